"""Names that files outside of the code may use: settings."""

from holdfast.config import Config, secret_file_names


def setting_names() -> set[str]:
    """Without HOLDFAST_, in lower case; with the files of secrets."""
    files_of_secrets = {name.removeprefix("HOLDFAST_").lower() for name in secret_file_names()}
    return {*Config.__dataclass_fields__, *files_of_secrets}
