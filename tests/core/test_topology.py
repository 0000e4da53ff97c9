"""The bare graph: order, cycles, who is behind whom."""

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.definition import ancestry
from ropewalk.core.definition.ancestry import not_ancestors
from ropewalk.core.definition.topology import Topology

SIZE = 12
NODES = st.integers(0, SIZE - 1)
EDGES = st.lists(st.tuples(NODES, NODES, st.sampled_from([None, "error", "true"])), max_size=40, unique=True)
FORWARD = EDGES.map(lambda edges: [edge for edge in edges if edge[0] < edge[1]])


def reachable(edges, node):
    """By the definition, without thinking of speed."""
    found = [target for source, target, _ in edges if source == node]
    for other in found:
        found.extend(target for source, target, _ in edges if source == other and target not in found)
    return sorted(set(found))


@given(edges=EDGES)
def test_the_order_holds_every_node_unless_there_is_a_cycle(edges):
    topology = Topology(SIZE, edges)
    has_cycle = any(node in reachable(edges, node) for node in range(SIZE))

    assert topology.is_acyclic is not has_cycle
    assert bool(topology.cycle()) is has_cycle


@given(edges=EDGES)
def test_a_cycle_is_made_of_edges(edges):
    cycle = Topology(SIZE, edges).cycle()
    pairs = {(source, target) for source, target, _ in edges}

    assert all(step in pairs for step in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert len(set(cycle)) == len(cycle)


@given(edges=FORWARD, names=st.permutations(range(SIZE)))
def test_sources_come_before_targets_and_ties_in_document_order(edges, names):
    topology = Topology(SIZE, [(names[source], names[target], port) for source, target, port in edges])
    place = {node: at for at, node in enumerate(topology.order)}

    assert all(place[names[source]] < place[names[target]] for source, target, _ in edges)
    assert Topology(SIZE, edges).order == list(range(SIZE))


@given(edges=EDGES, node=NODES)
def test_edges_are_kept_in_document_order_with_their_ports(edges, node):
    topology = Topology(SIZE, edges)
    leaving = [(target, port) for source, target, port in edges if source == node]

    assert list(zip(topology.targets[node], topology.ports[node], strict=True)) == leaving
    assert topology.indegree[node] == sum(target == node for _, target, _ in edges)
    assert topology.predecessors(node) == tuple(sorted({source for source, target, _ in edges if target == node}))
    assert bool(topology.has_error_edge[node]) == any(port == "error" for _, port in leaving)
    assert topology.port_names[node] == {port for _, port in leaving if port}
    assert (node in topology.sinks) == all(port == "error" for _, port in leaving)
    assert (node in topology.roots) == (topology.indegree[node] == 0)


@given(edges=FORWARD, references=st.lists(st.tuples(NODES, NODES)), block=st.integers(1, 4))
def test_exactly_the_references_to_no_ancestor_are_found(edges, references, block):
    default, ancestry.BLOCK = ancestry.BLOCK, block
    try:
        found = not_ancestors(Topology(SIZE, edges), references)
    finally:
        ancestry.BLOCK = default

    assert sorted(found) == sorted({pair for pair in references if pair[1] not in reachable(edges, pair[0])})
