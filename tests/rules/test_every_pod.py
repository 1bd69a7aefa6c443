"""Pages of lists that were merged from several databases."""

import pytest

from holdfast.web.every_pod import cut_page


@pytest.mark.parametrize(
    ("found", "size", "page"),
    [
        ([9, 8, 7], 3, [9, 8, 7]),
        ([9, 8, 7], 2, [9, 8]),
        ([9, 8, 8, 7], 2, [9]),
        ([9, 8, 8, 7], 3, [9, 8, 8]),
        ([8, 8, 8, 7], 2, [8, 8, 8]),
        ([], 2, []),
    ],
)
def test_a_page_does_not_end_between_equal_numbers(found: list[int], size: int, page: list[int]) -> None:
    assert cut_page(found, size, lambda one: one) == page


def test_pages_have_everything_once() -> None:
    found = [7, 7, 6, 5, 5, 5, 4, 3, 2, 2, 1]
    for size in range(1, 12):
        left, seen = found, list[int]()
        while left:
            seen += cut_page(left, size, lambda one: one)
            left = [one for one in found if one < seen[-1]]
        assert seen == found
