namespace tw {

// Room for a line of so many words among those that the host reads; none where it is used up. The
// first word counts words that were asked for, the second lines that found no room. Where the room is
// used up nobody asks for more, so that the count does not wrap.
TW_FN unsigned* print_line(unsigned* printed, unsigned room, unsigned words) {
  if (peek(printed) < room) {
    unsigned at = atomicAdd(printed, words);
    if (at + words <= room) return printed + 2 + at;
  }
  atomicAdd(printed + 1, 1u);
  return nullptr;
}

}  // namespace tw
