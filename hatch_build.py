"""What the metadata of a build depend on: where the repository is hosted.

The sources name no host. Whoever publishes a release sets ``UNBAG_REPOSITORY_URL``, as the release
workflow does; then the package has addresses, and the links of its README lead there. Without it,
there are no addresses, and the README stays as it is. Whatever an sdist says is kept by the wheels
made from it.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!https?:|#)[^)]+)\)")


def absolute_links(markdown: str, repository: str, revision: str) -> str:
    """Let relative links and pictures of a page lead to a repository.

    Examples
    --------
    >>> absolute_links("![It](a.png) is [new](b.md).", "https://host/unbag", "v1")
    '![It](https://host/unbag/raw/v1/a.png) is [new](https://host/unbag/blob/v1/b.md).'
    """

    def absolute(link):
        kind = "raw" if link["image"] else "blob"
        address = f"{repository}/{kind}/{revision}/{link['path']}"
        return f"{link['image']}[{link['text']}]({address})"

    return RELATIVE_LINK.sub(absolute, markdown)


class RepositoryMetadata(MetadataHookInterface):
    """Fill in the README and the addresses of the project."""

    def update(self, metadata: dict) -> None:
        """Change the metadata of a build in place."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("UNBAG_REPOSITORY_URL", "").rstrip("/")
        metadata["urls"] = {}
        if repository:
            revision = "main" if ".dev" in metadata["version"] else f"v{metadata['version']}"
            readme = absolute_links(readme, repository, revision)
            metadata["urls"] = {
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Documentation": f"{repository}/blob/{revision}/docs/index.md",
                "Changelog": f"{repository}/blob/{revision}/CHANGELOG.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
