namespace tw {

// Puts an element of a word into its place of another, after those of the places before it.
template <int WIDTH> TW_FN void put_row(unsigned& word, int place, unsigned from, int of) {
  insert<WIDTH>(word, place, from >> (of * WIDTH));
}

}  // namespace tw
