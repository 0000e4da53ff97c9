"""The way of a start is noted as `tools/walk.py` says."""

from tools import walk
from tools.walk import Hop


def test_the_walk_leads_from_the_request_to_the_node():
    hops = walk.measured()
    way = walk.followed(hops)

    assert way[0].name.endswith("HttpConnection.data_received")
    assert [hop.function for hop in hops].count("start_execution") == 1
    assert way[-1].file == "engines/runner.py"
    assert len({hop.name for hop in way}) == len(way) < len(hops)
    assert not [hop for hop in hops if hop.file.startswith("telemetry/") or hop.function.endswith("comp>")]


def test_a_function_that_calls_no_other_is_not_followed_and_no_function_twice():
    hops = [Hop("a.py", "one", 0, False), Hop("b.py", "leaf", 1), Hop("a.py", "one", 0, False), Hop("a.py", "two", 0)]

    assert [hop.function for hop in walk.followed(hops)] == ["one"]
    assert walk.files(walk.followed(hops)) == 1


def test_what_the_api_does_once_the_node_is_handed_over_is_the_answer():
    handed = Hop(*walk.HANDED_OVER.split(": "), 0)
    hops = [Hop("api/a.py", "ask", 0), handed, Hop("api/a.py", "say", 0), Hop("b.py", "run", 0)]

    assert [hop.function for hop in walk.on_the_way(hops)] == ["ask", "Hands.start", "run"]
