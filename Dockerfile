# The image gpu: minify and auto. torch, triton, a C++ compiler and Python's headers. A release names it by digest; on any other commit
# the runner builds action.yml from this file. Its first lines are those of light.Dockerfile.
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

LABEL org.opencontainers.image.title="torch-minify-gpu" \
    org.opencontainers.image.description="Minimizes failing PyTorch compiler programs."
# What the runtime of NVIDIA gives a container that asks for it.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# git and git-lfs are for actions/checkout, which runs in the job's container.
# Not pinned: Debian keeps no old versions, and the base image, which is pinned, decides the release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ git git-lfs \
    && rm -rf /var/lib/apt/lists/*
# scripts/try-container gives a smaller list, without CUDA; a release builds the image of docker/gpu-cu126.in too, whose torch is on an index
# of its own
ARG REQUIREMENTS=docker/gpu.txt
ARG TORCH_INDEX=
COPY ${REQUIREMENTS} gpu.txt
RUN pip install --require-hashes ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r gpu.txt
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
# the list stays: that of cu126 is in no commit
RUN pip install --no-deps --no-build-isolation . && mkdir /usr/share/torch-minify && mv gpu.txt /usr/share/torch-minify/packages.txt && rm -rf /src/*
WORKDIR /
ENTRYPOINT ["python", "-I", "-m", "bot.action"]
# last, since they change with every build
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
