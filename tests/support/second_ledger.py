"""A second ledger on the engines of the tests."""

from dataclasses import replace

from holdfast.config import Config


def beside(config: Config, database_url: str, number: int) -> Config:
    """Its shows have the numbers of other shows: their maps are in a database of Valkey of their own."""
    return replace(config, database_url=database_url, redis_url=f"{config.redis_url}?db={number}")
