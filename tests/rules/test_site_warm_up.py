"""A web worker that says it is ready has nothing left to read for its first page."""

from holdfast.accounts import LANGUAGES, LOCALES
from holdfast.site.templates_env import (
    assets_version,
    environment_for,
    localiser_for,
    template_names,
    warm_up,
)


def test_templates_texts_and_files_are_loaded_before_the_first_request() -> None:
    for cached in (environment_for, localiser_for, assets_version):
        cached.cache_clear()

    warm_up()

    for language in LANGUAGES:
        made = environment_for(language)
        assert made.cache is not None
        assert {name for _, name in made.cache.keys()} == set(template_names())  # noqa: SIM118
    assert localiser_for.cache_info().currsize == len(LANGUAGES)
    assert assets_version.cache_info().currsize == 1
    for language in LANGUAGES:
        l10n = localiser_for(LOCALES[language][0])
        assert all(one.cache_info().currsize for one in (l10n.number, l10n.money, l10n.day, l10n.time))
