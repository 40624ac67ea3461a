namespace tw {

// What the copy engine knows of a tensor; the launch fills it in.
struct alignas(64) TensorMap { unsigned char bytes[128]; };
TW_FN void prefetch(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }
// Barriers that this thread has initialised are shown to the copy engine, which counts bytes there.
TW_FN void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
// A box of a tensor to shared memory. The indices of its first element come innermost first; the
// barrier hears of its bytes.
template <class T> TW_FN void tma_load(const T* to, int i, const TensorMap& map, unsigned long long* bar, int x) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(mbarrier_address(bar)) : "memory");
}
template <class T> TW_FN void tma_load(const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(mbarrier_address(bar)) : "memory");
}
template <class T>
TW_FN void tma_load(const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(mbarrier_address(bar)) : "memory");
}
template <class T>
TW_FN void tma_load(const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z, int u) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(mbarrier_address(bar)) : "memory");
}
template <class T>
TW_FN void tma_load(const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z, int u, int v) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(mbarrier_address(bar)) : "memory");
}

// A box of shared memory to a tensor, as a part of this thread's open group.
template <class T> TW_FN void tma_store(const TensorMap& map, const T* from, int i, int x) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];"
               ::"l"(&map), "r"(x), "r"(shared_address(from, i)) : "memory");
}
template <class T> TW_FN void tma_store(const TensorMap& map, const T* from, int i, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
               ::"l"(&map), "r"(x), "r"(y), "r"(shared_address(from, i)) : "memory");
}
template <class T> TW_FN void tma_store(const TensorMap& map, const T* from, int i, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];"
               ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(from, i)) : "memory");
}
template <class T> TW_FN void tma_store(const TensorMap& map, const T* from, int i, int x, int y, int z, int u) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
               ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(shared_address(from, i)) : "memory");
}
template <class T>
TW_FN void tma_store(const TensorMap& map, const T* from, int i, int x, int y, int z, int u, int v) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];"
               ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(shared_address(from, i)) : "memory");
}
TW_FN void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> TW_FN void tma_store_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
template <int N> TW_FN void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace tw
