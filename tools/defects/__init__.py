"""Known defects as mutants: data, by subject."""

from tools.defects import holds, money, operating, web

DEFECTS = (*money.MUTANTS, *holds.MUTANTS, *operating.MUTANTS, *web.MUTANTS)
