"""Known defects as mutants: data, by subject."""

from tools.defects import holds, money, operating, pages, people, pods, redis, seats, web

DEFECTS = (
    *money.MUTANTS,
    *holds.MUTANTS,
    *operating.MUTANTS,
    *web.MUTANTS,
    *people.MUTANTS,
    *pods.MUTANTS,
    *pages.MUTANTS,
    *seats.MUTANTS,
    *redis.MUTANTS,
)
