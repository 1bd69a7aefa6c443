"""Which test runs a block of the docs. Pages that no test can run are run by tools/run_docs.py."""

from tests.tidy.markdown_pages import Block

# Which test runs the blocks of a page, of a section of it, or of a language anywhere.
EXECUTED = {
    "README.md#book-by-curl": "tests/journeys/test_readme.py",
    "docs/tutorial.md": "tests/journeys/test_readme.py",
    "docs/first_house.md": "tests/journeys/test_first_house.py",
    "docs/waiting_room.md#check-the-draw": "tests/rules/test_queue_draw.py",
    "docs/operating/backup.md#point-in-time-recovery": "tests/stores/test_point_in_time.py",
    "docs/operating/recovery.md": "tests/storms/test_recovery.py",
    "docs/operating/standby.md": "tests/support/postgres_server.py",
    "docs/layouts.md": "tests/tidy/test_docs.py",
    "sql": "tests/stores/test_documented_queries.py",
    "js": "tests/browser/test_seats_live.py",
}
# Pages that are made from the code, and the test that compares them with it.
GENERATED = {
    "docs/capacity.md": "tests/rules/test_capacity.py",
    "docs/flows/booking.md": "tests/tidy/test_docs.py",
    "docs/flows/payment.md": "tests/tidy/test_docs.py",
    "docs/operating/commands.md": "tests/tidy/test_docs.py",
}


def executor(block: Block) -> str | None:
    """The test that runs or generates the block."""
    page, section = block.page, f"{block.page}#{block.section}"
    return GENERATED.get(page) or EXECUTED.get(page) or EXECUTED.get(section) or EXECUTED.get(block.language)
