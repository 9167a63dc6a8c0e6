# The image light: gate, report, stop, sweep. No torch, small enough for a hosted runner to pull, or to build, in seconds. A release names it by
# digest; on any other commit the runner builds it from this file, in whose folder the package is, for each job. Its first lines are those of Dockerfile.
ARG BASE=python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
FROM ${BASE}

LABEL org.opencontainers.image.source="https://github.com/torch-minify/torch-minify" \
    org.opencontainers.image.licenses="BSD-3-Clause" \
    org.opencontainers.image.vendor="The torch-minify authors"

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

WORKDIR /src

LABEL org.opencontainers.image.title="torch-minify-light" \
    org.opencontainers.image.description="Reads what is asked and posts what was found; runs nobody's program."
COPY docker/light.txt ./
RUN pip install --require-hashes -r light.txt
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
RUN pip install --no-deps --no-build-isolation . && rm -rf /src/*
WORKDIR /
# root, as the runner wants it of a container action: the workspace belongs to the runner's account. -I: the workspace is no source of modules.
ENTRYPOINT ["python", "-I", "-m", "bot.action"]
# last, since they change with every build
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
