namespace tw {

// A box of a tensor to the same place in shared memory of each block of the cluster whose bit is set;
// the same barrier of each hears of its bytes.
template <class T>
TW_FN void tma_multicast(unsigned short blocks, const T* to, int i, const TensorMap& map, unsigned long long* bar, int x) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], %4;"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(mbarrier_address(bar)), "h"(blocks) : "memory");
}
template <class T>
TW_FN void tma_multicast(unsigned short blocks, const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(mbarrier_address(bar)), "h"(blocks) : "memory");
}
template <class T>
TW_FN void tma_multicast(unsigned short blocks, const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(mbarrier_address(bar)), "h"(blocks) : "memory");
}
template <class T>
TW_FN void tma_multicast(unsigned short blocks, const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z, int u) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(mbarrier_address(bar)), "h"(blocks) : "memory");
}
template <class T>
TW_FN void tma_multicast(unsigned short blocks, const T* to, int i, const TensorMap& map, unsigned long long* bar, int x, int y, int z, int u, int v) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;"
               ::"r"(shared_address(to, i)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(mbarrier_address(bar)), "h"(blocks) : "memory");
}

}  // namespace tw
