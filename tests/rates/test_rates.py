"""The campaign of breakers and rate limits in small; `python -m tools.rates` runs it in full size."""

from pathlib import Path

from tests.rates.campaign import all_down, limited, mostly_well


async def test_one_failure_in_a_hundred_holds_no_run_and_is_mended_by_retries(tmp_path: Path):
    assert (await mostly_well(str(tmp_path / "ropewalk.db"), 300)).violations == []


async def test_it_is_the_same_on_a_shared_store(database: str):
    assert (await mostly_well(database, 200)).violations == []


async def test_a_server_that_always_fails_is_left_alone_after_twenty_calls(tmp_path: Path):
    assert (await all_down(str(tmp_path / "ropewalk.db"), 100)).violations == []


async def test_so_it_is_on_a_shared_store(database: str):
    assert (await all_down(database, 100)).violations == []


async def test_three_workers_keep_the_limit_of_one_host(database: str, tmp_path: Path):
    assert (await limited(database, tmp_path, 3, slack=0.6)).violations == []
