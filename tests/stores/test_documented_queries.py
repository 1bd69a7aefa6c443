"""The queries that the docs show, prepared by the real engine on the real tables."""

from holdfast.engines.postgres import Postgres
from tests.tidy.markdown_pages import blocks
from tests.tidy.tree import files


async def test_every_sql_block_of_the_docs_can_be_prepared(postgres: Postgres) -> None:
    shown = [block for path in files(".md") for block in blocks(path) if block.language == "sql"]
    assert shown

    for block in shown:
        for statement in filter(str.strip, block.text.split(";")):
            async with postgres.transaction() as tx:
                await tx.execute(f"PREPARE shown AS {statement}")
                await tx.execute("DEALLOCATE shown")
