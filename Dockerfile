# syntax=docker/dockerfile:1
# The image of every Ray pod and of submitters: the package and one of the tried-together sets, on Ray's own image.
#
#   docker build --build-arg FLAVOUR=cpu -t gristmill:0.1.0-cpu .
#   docker build --build-arg FLAVOUR=gpu -t gristmill:0.1.0-gpu .
#
# Jobs, schemas and engine configs are not in it: `gristmill render` puts them into a ConfigMap. Nor are models: mount a
# Hugging Face cache at /models. CPU_BASE and GPU_BASE take a mirror, or a digest where tags are not trusted;
# `--secret id=pip,src=pip.conf` names another index of packages, and leaves no password in the image.
ARG FLAVOUR=cpu
ARG CPU_BASE=rayproject/ray:2.60.0-py311-cpu
# CUDA 13, as in gpu.lock. Ray's tag `-gpu` is CUDA 12.1, whose nvcc FlashInfer would compile its kernels with.
ARG GPU_BASE=rayproject/ray:2.60.0-py311-cu130

FROM ${CPU_BASE} AS base-cpu
USER root
# vLLM's kernels ask for libnuma, torch.compile for a compiler. Ray's CPU image has neither.
RUN apt-get update && \
    apt-get install --yes --no-install-recommends g++ libnuma1 && \
    rm -rf /var/lib/apt/lists/*

FROM ${GPU_BASE} AS base-gpu

FROM base-${FLAVOUR} AS build
ARG FLAVOUR
USER root
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /build
ENV PIP_CACHE_DIR=/var/cache/pip PIP_DISABLE_PIP_VERSION_CHECK=1
# An environment of its own: Ray's image brings other versions of what the lock pins.
COPY requirements/install.sh requirements/${FLAVOUR}.lock requirements/
RUN --mount=type=cache,target=/var/cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    python -m venv /opt/gristmill && \
    requirements/install.sh /opt/gristmill/bin/python "requirements/${FLAVOUR}.lock"
# After the lock, which changes less often.
COPY pyproject.toml README.md LICENSE ./
COPY pipeline pipeline
RUN /opt/gristmill/bin/python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation . && \
    /opt/gristmill/bin/gristmill engines

FROM base-${FLAVOUR}
LABEL org.opencontainers.image.title="gristmill" \
      org.opencontainers.image.licenses="Apache-2.0"
USER root
COPY --from=build /opt/gristmill /opt/gristmill
# In Ray's image its user becomes root by `sudo`, without a password.
RUN rm -f /usr/bin/sudo && \
    mkdir /models /scratch && \
    chown 1000:100 /models /scratch
# NVIDIA_*: as in NVIDIA's images, for a base that is not one. The others: nothing is written beside the code, and
# nothing is told to anybody.
ENV PATH=/opt/gristmill/bin:$PATH \
    HF_HOME=/models \
    GRISTMILL_CACHE=/scratch/gristmill \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    DO_NOT_TRACK=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# User `ray`, group `users`, as in Ray's image and in the manifests.
USER 1000:100
WORKDIR /scratch
VOLUME ["/models"]
CMD ["gristmill", "--help"]
