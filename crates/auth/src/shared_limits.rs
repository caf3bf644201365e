//! Limits that the nodes of a cluster count together.
//!
//! The store counts a call for all nodes, by its own clock. While the store cannot be reached, each
//! node counts alone, up to its part of the limit.

use std::sync::Arc;
use std::time::Duration;

use sabir_cluster::{Bound, Cluster, Count};
use sabir_engine::{Admission, Limited, OverseenCall};

use crate::limits::{DAY, Limit, Limits};

/// Whether a call may run at `now`, the time since 1970.
pub(crate) fn admit(
    limits: &Arc<Limits>,
    cluster: &Cluster,
    call: &OverseenCall,
    now: Duration,
) -> Admission {
    let rules: Vec<_> =
        limits.of(call).flat_map(|(nth, limit)| rules(cluster, nth, limit, call, now)).collect();
    if rules.is_empty() {
        return Admission::Decided(Ok(()));
    }
    let (limits, cluster, call) = (limits.clone(), cluster.clone(), call.clone());
    Admission::Asked(Box::pin(async move {
        let counts = rules.iter().map(|rule| Count { name: &rule.name, bound: rule.bound });
        match cluster.store.count(&counts.collect::<Vec<_>>()).await {
            Ok(None) => Ok(()),
            Ok(Some((nth, retry_after))) => {
                let rule = rules.get(nth).map(|rule| rule.words.clone()).unwrap_or_default();
                Err(Limited { rule, retry_after })
            }
            Err(away) => {
                tracing::debug!("a call is counted by this node only: {away}");
                limits.admit(&call, now, cluster.members.count())
            }
        }
    }))
}

/// A counter in the store, its bound, and the name of the limit as shown to people.
struct Rule {
    name: String,
    bound: Bound,
    words: Box<str>,
}

fn rules(
    cluster: &Cluster,
    nth: usize,
    limit: &Limit,
    call: &OverseenCall,
    now: Duration,
) -> impl Iterator<Item = Rule> {
    let rate = limit.rate.map(|rate| {
        let each = rate.period / rate.calls.max(1);
        (0, Bound::Rate { each, burst: rate.burst })
    });
    let quota = limit.quota.map(|most| {
        let day = now.as_secs() / DAY;
        let left = Duration::from_secs((day + 1) * DAY).saturating_sub(now);
        (day, Bound::Quota { most, left })
    });
    let (words, shared): (Box<str>, _) = (limit.to_string().into(), limit.bucket(call));
    let shared = format!("{shared:?}");
    [rate, quota].into_iter().flatten().map(move |(day, bound)| {
        let parts = ["limit", &format!("{nth} {day}"), &words, &shared];
        let name = cluster.seal.name(&parts.map(str::as_bytes));
        Rule { name, bound, words: words.clone() }
    })
}

#[cfg(test)]
mod tests {
    use sabir_budget::Rate;
    use sabir_cluster::{DiskStore, Hub, Store};
    use sabir_wire::{Caller, Method};

    use super::*;
    use crate::limits::Per;

    fn call(subject: &str) -> OverseenCall {
        OverseenCall {
            caller: Caller::new("i", subject),
            method: Method::CallTool,
            name: Some("t".into()),
            source: Some("command x".into()),
            arguments: None,
        }
    }

    async fn decided(admission: Admission) -> Result<(), Limited> {
        match admission {
            Admission::Decided(decision) => decision,
            Admission::Asked(asked) => asked.await,
        }
    }

    /// The number of calls that may run, of those that three nodes get in turn.
    async fn admitted(nodes: &[(Arc<Limits>, Cluster)], calls: usize, subject: &str) -> usize {
        let now = Duration::from_secs(100 * DAY + 60);
        let mut count = 0;
        for (limits, cluster) in nodes.iter().cycle().take(calls) {
            let is_ok = decided(admit(limits, cluster, &call(subject), now)).await.is_ok();
            count += usize::from(is_ok);
        }
        count
    }

    fn nodes(store: &Arc<dyn Store>, limits: &[Limit]) -> Vec<(Arc<Limits>, Cluster)> {
        let limits = || Arc::new(Limits::new(limits.to_vec()));
        (0..3).map(|_| (limits(), Cluster::alone(store.clone(), &[7; 32]))).collect()
    }

    fn quota(quota: u64) -> Vec<Limit> {
        vec![Limit { per: vec![Per::Caller], quota: Some(quota), ..Limit::default() }]
    }

    fn rate(calls: u32) -> Vec<Limit> {
        let rate = Rate { calls, period: Duration::from_secs(86_400), burst: calls };
        vec![Limit { rate: Some(rate), ..Limit::default() }]
    }

    #[tokio::test]
    async fn nodes_count_together_in_memory_and_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = DiskStore::open(&folder.path().join("state.redb")).unwrap();
        for store in [Arc::new(Hub::default()) as Arc<dyn Store>, Arc::new(file)] {
            let three = nodes(&store, &quota(10));
            assert_eq!(admitted(&three, 30, "ann").await, 10);
            assert_eq!(admitted(&three, 30, "bob").await, 10);
            assert_eq!(admitted(&nodes(&store, &rate(6)), 30, "ann").await, 6);
        }
    }

    #[tokio::test]
    async fn the_rule_and_the_time_to_wait_are_those_of_the_limit() {
        let store: Arc<dyn Store> = Arc::new(Hub::default());
        let three = nodes(&store, &quota(1));
        assert_eq!(admitted(&three, 1, "ann").await, 1);
        let now = Duration::from_secs(100 * DAY + 60);
        let refused = decided(admit(&three[1].0, &three[1].1, &call("ann"), now)).await;
        let refused = refused.unwrap_err();
        assert_eq!(&*refused.rule, "1 in a day per caller");
        assert_eq!(refused.retry_after, Duration::from_secs(DAY - 60));
    }

    #[tokio::test]
    async fn while_the_store_is_away_each_node_has_its_part() {
        let hub = Arc::new(Hub::default());
        let store: Arc<dyn Store> = hub.clone();
        for limits in [quota(12), rate(12)] {
            let three = nodes(&store, &limits);
            for (_, cluster) in &three {
                ["a", "b", "c"].iter().for_each(|node| cluster.members.heard(node));
            }
            hub.set_away(true);
            assert_eq!(admitted(&three, 60, "ann").await, 12, "{limits:?}");
            hub.set_away(false);
        }
    }
}
