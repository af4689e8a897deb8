"""The last 20 nodes by time of one owner, among 10,000 and among 1,000,000 nodes.

`python benchmarks/recency.py [--nodes 1000000] [--owners 1000]`. The time is the database's own
(EXPLAIN ANALYZE: planning and execution), each call for another owner.
"""

import argparse
import json
import sys

from common import machine, percentile, scratch_database

CALLS = 400
WARM = 100  # owners asked about, each once before it counts


def fill(nodes: int, owners: int) -> list[int]:
    """Nodes with dates spread over two years, dealt to the owners in turn; returns the owners' ids."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE auth_user CASCADE")
        cursor.execute(
            """INSERT INTO auth_user (username, password, is_superuser, first_name, last_name, email, is_staff,
                                      is_active, date_joined)
               SELECT 'bench' || n, '', false, '', '', '', false, true, now() FROM generate_series(1, %s) n
               RETURNING id""",
            [owners],
        )
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            """INSERT INTO memory_memorynode
                 (id, owner_id, node_type, tier, label, content, payload, tags, salience, importance, confidence,
                  session_id, turn_index, occurred_at, created_at, updated_at, version, indexed_version,
                  connected_version, hold, derived)
               SELECT gen_random_uuid(), (%s::int[])[1 + n %% %s], 'Conversation', 'Episodic', 'chat:' || n,
                      'Q: how was the day number ' || n || E'\\nA: tell me more about it',
                      '{"q": "how was the day", "a": "tell me more"}', '{Conversation,chat,timestamped}', .5, .5, 1,
                      gen_random_uuid(), 0, now() - random() * interval '730 days', now(), now(), 1, 1,
                      1, 0, false
               FROM generate_series(1, %s) n""",
            [ids, owners, nodes],
        )
        cursor.execute("VACUUM ANALYZE memory_memorynode")
    return ids


def measure(ids: list[int]) -> list[float]:
    """Milliseconds in the database of CALLS calls."""
    from django.contrib.auth.models import User
    from django.db import connection

    from memory.models import MemoryNode

    times = []
    for call in range(CALLS + WARM):
        owner = User(pk=ids[call % min(len(ids), WARM)])
        query = MemoryNode.objects.for_owner(owner).recent_by_type("Conversation", 20)
        sql, parameters = query.query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", parameters)
            plan = cursor.fetchone()[0]
        plan = (json.loads(plan) if isinstance(plan, str) else plan)[0]
        if call >= WARM:
            times.append(plan["Planning Time"] + plan["Execution Time"])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--owners", type=int, default=1000)
    options = parser.parse_args()
    print(f"recency: last 20 of one owner; {machine()}; {CALLS} calls each")
    p95 = {}
    with scratch_database():
        for nodes, owners in ((10_000, max(1, options.owners // 100)), (options.nodes, options.owners)):
            times = measure(fill(nodes, owners))
            p95[nodes] = percentile(times, 0.95)
            print(
                f"{nodes:>9,} nodes of {owners:>5,} owners: p50 {percentile(times, 0.5):.2f} ms, "
                f"p95 {p95[nodes]:.2f} ms in the database"
            )
    small, large = p95[10_000], p95[options.nodes]
    print(f"p95 grows by a factor of {large / small:.2f}")
    sys.exit(0 if large <= 5 else 1)


if __name__ == "__main__":
    main()
