//! Schedules as texts: orders for all loops of a kind, whose pieces are called by their part in the
//! products ([`super::super::text`]).

use super::super::arrangement::Arrangement;
use super::super::text;
use super::{Question, Why};

/// The waves of two blocks share a SIMD and alternate by themselves: nothing is to be met but for the
/// tiles, and what is issued first is the product, and the reads beside the loads.
pub(super) const ONE_CLUSTER: &str = "
schedule one_cluster
  cluster read { read A }
  cluster mem prio 1 { bring A; read B }
  cluster load { bring B }
  cluster dot prio 1 { multiply C }
  cluster store { store A, B }
";

/// All operands are read before the first half of the product, and the tiles are stored between the
/// halves: one version of them serves.
pub(super) const TWO_CLUSTERS: &str = "
schedule two_clusters
split k 2
stream halves lag 1
  cluster mem0 bar { read A[k0], B[k0]; bring A; read A[k1], B[k1]; bring B }
  cluster dot0 bar prio 1 { multiply C[k0] }
  cluster mem1 bar { store A, B }
  cluster dot1 bar prio 1 { multiply C[k1] }
";

/// A slice's operands fit beside the sums of a large tile. The last two are read together, so that
/// tiles are stored two barriers behind the last read: one version of them serves.
pub(super) const FOUR_CLUSTERS: &str = "
schedule four_clusters
split k 4
stream halves lag 1
  cluster mem0 bar { bring A; read A[k0], B[k0] }
  cluster dot0 bar prio 1 { multiply C[k0] }
  cluster mem1 bar { bring B; read A[k1], B[k1] }
  cluster dot1 bar prio 1 { multiply C[k1] }
  cluster mem2 bar { read A[k2], B[k2], A[k3], B[k3] }
  cluster dot2 bar prio 1 { multiply C[k2] }
  cluster mem3 bar { store A, B }
  cluster dot3 bar prio 1 { multiply C[k3] }
";

/// Copies that waves do by themselves, two iterations ahead, one beside the reads and one beside the
/// product. A version to spare, so that they overwrite nothing that was just read.
pub(super) const READS_AND_ALL: &str = "
schedule reads_and_all
stream halves lag 1
spare 1
  cluster mem bar { read A, B; bring A }
  cluster all bar { bring B; multiply C; store A, B }
";

/// One half of the waves issues its copies while the other reads and multiplies.
pub(super) const COPIES_AND_ALL: &str = "
schedule copies_and_all
stream halves lag 1
  cluster mem bar { bring A, B }
  cluster all bar { read A, B; multiply C; store A, B }
";

/// Each product beside the reads and copies of the other. What few vector instructions memory takes
/// are issued before those of the computing half.
pub(super) const CHAINED_PRODUCTS: &str = "
schedule chained_products
stream halves lag 1
  cluster dot0 bar { before C; multiply C; after C }
  cluster mem0 bar prio 1 { read A(2), B(2); bring A, B; store A, B }
  cluster dot1 bar { multiply C(2); after C(2) }
  cluster mem1 bar prio 1 { read A ahead 1, B ahead 1; bring A(2), B(2); store A(2), B(2) }
";

/// Two products are two names: each has a cluster of its reads and one of its matrix instructions.
pub(super) const TWO_PRODUCTS: &str = "
schedule two_products
stream halves lag 1
  cluster mem0 bar { bring A; read A; bring B; read B }
  cluster dot0 bar prio 1 { before C; multiply C; after C }
  cluster mem1 bar { bring A(2); read A(2); bring B(2); read B(2); store A, B, A(2), B(2) }
  cluster dot1 bar prio 1 { multiply C(2); after C(2) }
";

/// All waves together, a step along K and a half of the columns at a time: what a stage multiplies is read
/// just before, with a half of a tile's copies behind. The block meets once, before the last products.
pub(super) const FOUR_STAGES: &str = "
schedule four_stages
split n 2, k 2, p 2
  cluster s0 { read A[k0], B[n0,k0]; bring A[p0] }
  cluster p0 prio 1 { multiply C[n0,k0] }
  cluster s1 { read B[n1,k0]; bring A[p1] }
  cluster p1 prio 1 { multiply C[n1,k0] }
  cluster s2 { read A[k1], B[n0,k1]; bring B[p0] }
  cluster p2 prio 1 { multiply C[n0,k1] }
  cluster s3 { read B[n1,k1]; bring B[p1] }
  cluster p3 bar prio 1 { multiply C[n1,k1] }
";

/// What such a text is in a loop.
pub(super) fn arrange(order: &str, question: Question<'_>) -> Result<Arrangement, Why> {
    let orders = text::parse(order).map_err(|mistake| mistake.message)?;
    let Some(order) = orders.first() else {
        return Err("its text has no order".into());
    };
    text::arrange(order, question)
}
