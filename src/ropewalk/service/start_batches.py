"""Any number of starts of one version, a thousand in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.engines.base import AT_ONCE, StartRequest, Version
from ropewalk.service.starting import LARGEST_BATCH, MOST_PROBLEMS, check_inputs
from ropewalk.service.verbs import NewStart, Service

FIELD: Final = "inputs"


async def start_many(
    service: Service, version: Version, inputs: Sequence[JSON], overrides: Mapping[str, JSON], priority: int
) -> AsyncIterator[list[str]]:
    """Accept an execution for each input; the ids of each transaction, in order, as soon as it is durable.

    Refused ones are named, each by its place among the inputs, before the first is accepted.
    """
    if len(inputs) > LARGEST_BATCH:
        await _check(service, version, inputs)
    for first in range(0, len(inputs), LARGEST_BATCH):
        some = inputs[first : first + LARGEST_BATCH]
        try:
            yield await service.start_batch([NewStart(version, each, overrides, priority) for each in some])
        except InvalidInput as error:
            # What is wrong with all of them alike is said once.
            named = dict.fromkeys(_named(each, first) for each in error.problems)
            raise InvalidInput(list(named)) from error


async def _check(service: Service, version: Version, inputs: Sequence[JSON]) -> None:
    """Refuses before the first transaction what a later one would refuse."""
    problems: list[Problem] = []
    for first in range(0, len(inputs), LARGEST_BATCH):
        some = inputs[first : first + LARGEST_BATCH]
        wanted = {place: StartRequest(version=version, workspace=service.workspace, input=each)
                  for place, each in enumerate(some)}  # fmt: skip
        found = await check_inputs(service.engine.computing, wanted) or await _wrong_keys(wanted)
        problems += [_named(each, first) for each in found]
    if problems:
        raise InvalidInput(problems[:MOST_PROBLEMS])


async def _wrong_keys(requests: Mapping[int, StartRequest]) -> list[Problem]:
    """What is wrong with the concurrency keys that the inputs give."""
    problems: list[Problem] = []
    if not requests or requests[0].version.plan.concurrency_key is None:
        return problems
    for place, request in requests.items():
        if place % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
        try:
            request.concurrency_key()
        except InvalidInput as error:
            problems += [Problem(("starts", place, *each.path), each.message) for each in error.problems]
    return problems


def _named(problem: Problem, first: int) -> Problem:
    """A problem of a batch (`starts[7].input`) as one of the inputs, or of what all of them are started with."""
    match problem.path:
        case ("starts", int(), "vars" | "priority" as field, *rest):
            return Problem((field, *rest), problem.message)
        case ("starts", int(place), "input", *rest):
            return Problem((FIELD, first + place, *rest), problem.message)
        case ("starts", int(place), *rest):
            return Problem((FIELD, first + place, *rest), problem.message)
        case _:
            return problem
