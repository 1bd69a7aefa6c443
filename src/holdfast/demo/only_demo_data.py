"""The demo is never added to a real box office: its administrator has a published password."""

from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries, Queryable

Q = Queries("holdfast.demo")


async def refuse_other_data(connection: Queryable) -> None:
    """OperatorError unless the database is empty or was filled by the demo."""
    if await connection.fetchval(Q.has_accounts_table) and await connection.fetchval(Q.has_other_data):
        raise OperatorError(
            "the database holds data that is not the demo's, and the demo cannot be removed again: choose an "
            "empty folder with --data and unset HOLDFAST_DATABASE_URL, or name an empty database"
        )
