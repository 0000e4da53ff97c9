"""Cursors: only ours lead anywhere, and only in their own list."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.api.shapes.cursors import LONGEST, Cursors
from ropewalk.api.shapes.problems import Refused
from ropewalk.engines.runner import LONGEST_TARGET
from tests.api.stories import Town
from tests.engines.worlds import flow, node

OURS = Cursors("key")
PLACES = st.none() | st.integers(-(2**53), 2**53) | st.text(max_size=50) | st.lists(st.text(max_size=20), max_size=5)


def is_refused(cursors: Cursors, listing: str, cursor: str) -> bool:
    try:
        cursors.read(listing, cursor)
    except Refused as refusal:
        return refusal.status_code == 422
    return False


@given(PLACES)
def test_a_cursor_leads_back_to_its_place(place: Any):
    assert OURS.read("list", OURS.write("list", place)) == place


@given(st.text(max_size=200))
def test_any_text_that_is_not_ours_is_refused(text: str):
    assert is_refused(OURS, "list", text)


@given(st.binary(max_size=200))
def test_any_bytes_that_we_did_not_sign_are_refused(raw: bytes):
    assert is_refused(OURS, "list", base64.urlsafe_b64encode(raw).decode().rstrip("="))


@given(PLACES, st.data())
def test_one_changed_bit_is_enough(place: Any, data: st.DataObject):
    cursor = OURS.write("list", place)
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8

    assert is_refused(OURS, "list", base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("="))


@pytest.mark.parametrize(("cursors", "listing"), [(OURS, "another"), (Cursors("another key"), "list"), (OURS, "")])
def test_a_cursor_is_good_for_its_own_list_and_server_alone(cursors: Cursors, listing: str):
    assert is_refused(cursors, listing, OURS.write("list", "place"))


def test_a_listing_and_its_place_cannot_be_shifted_into_one_another():
    assert is_refused(OURS, 'list\0"a', OURS.write("list", "a"))


async def pages(town: Town, path: str) -> list[str]:
    """Every item of a list, one on a page, by the name the list is ordered by."""
    found, cursor = [], None
    while True:
        page = await town.get(path, params={"limit": 1, **({} if cursor is None else {"cursor": cursor})})
        found += [next(each[name] for name in ("name", "subject", "target") if name in each) for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found


async def test_lists_of_the_longest_names_are_read_to_their_end(each_town: Town):
    wide = "\N{ANCHOR}\N{ROCKET}" * 500
    names = [f"{place}{wide}"[:200] for place in "ab"]
    subjects = [f"user:{place}{wide}"[:255] for place in "ab"]
    endpoints = [f"{place}{wide * 10}" for place in "ab"]
    for name in names:
        await each_town.save(flow(node("n", "noop"), name=name))
    for subject in subjects:
        await each_town.ask("PUT", "/members", json={"subject": subject, "role": "viewer"})
    for place, endpoint in enumerate(endpoints):
        await each_town.run(flow(node("n", "call", endpoint=endpoint, fails=9), name=f"calls {place}"))

    assert (await pages(each_town, "/workflow/definitions"))[:2] == names
    assert await pages(each_town, "/members") == subjects
    assert await pages(each_town, "/breakers") == [f"call {each}"[:LONGEST_TARGET] for each in endpoints]


@pytest.mark.parametrize("character", ["x", "\N{ROCKET}", "\x01", '"'])
def test_the_longest_name_in_a_list_makes_no_cursor_that_is_too_long(character: str):
    assert len(OURS.write("list", character * LONGEST_TARGET)) <= LONGEST
