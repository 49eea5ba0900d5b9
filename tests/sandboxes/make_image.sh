#!/usr/bin/env bash
# Make the image that the docker sandbox is tested on, without a registry: Debian by debootstrap,
# and the libraries that `mle-ideator image build` would install, by pip.
#
#     tests/sandboxes/make_image.sh [TAG] [PYTHON]
#
# PYTHON is the one of this checkout. Needs root, debootstrap, and a running Docker daemon. The
# finished file system is kept below ~/.cache, by the hash of what it is made from.
set -euo pipefail
script=$(realpath "$0")
cd "$(dirname "$script")/../.."

tag=${1:-mle-ideator/sandbox}
python=${2:-.venv/bin/python}
# Debian 12 has Python 3.11
release=bookworm version=3.11
# where this machine gets its own packages
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | head -n 1)}

requirements=$("$python" -c 'from mle_ideator.sandboxes import recipe; print(recipe.requirements() + "pip")' |
    grep -vE '^(torch|torchvision|transformers|tensorflow)==')  # large, and no test needs them there
key=$(cat "$script" - <<<"$requirements" | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mle-ideator-tests
file=$cache/image-$key.tar.gz

if [ ! -e "$file" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/making-XXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
    debootstrap --variant=minbase --include=python3,procps,psmisc,libgomp1 "$release" "$work/root" "$mirror"
    "$python" -m pip install --quiet --no-warn-script-location --only-binary=:all: \
        --python-version "$version" --target "$work/root/usr/local/lib/python$version/dist-packages" \
        --requirement /dev/stdin <<<"$requirements"
    ln -s /usr/bin/python3 "$work/root/usr/local/bin/python"
    rm -rf "$work"/root/{var/cache/apt/archives,var/lib/apt/lists,usr/share/{doc,man,locale}}
    tar -C "$work/root" --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -c . |
        gzip -1 >"$work/image.tar.gz"
    mv "$work/image.tar.gz" "$file"
fi

docker import "$file" "$tag"
