# syntax=docker/dockerfile:1
# The image of every Ray pod and of submitters: the package and one of the tried-together sets, on Ray's own image.
#
#   docker build --build-arg FLAVOUR=cpu -t gristmill:0.1.0-cpu .
#   docker build --build-arg FLAVOUR=gpu -t gristmill:0.1.0-gpu .
#
# Jobs, schemas and engine configs are not in it: `gristmill render` puts them into a ConfigMap. Nor are models: mount a
# Hugging Face cache at /models. BASE takes a mirror, or a digest (rayproject/ray@sha256:…) where tags are not trusted.
ARG FLAVOUR=cpu
ARG RAY_VERSION=2.60.0
ARG BASE=rayproject/ray:${RAY_VERSION}-py311-${FLAVOUR}

FROM ${BASE} AS build
ARG FLAVOUR
USER root
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# An environment of its own: Ray's image brings other versions of what the lock pins.
COPY requirements/install.sh requirements/${FLAVOUR}.lock requirements/
RUN python -m venv /opt/gristmill && \
    requirements/install.sh /opt/gristmill/bin/python "requirements/${FLAVOUR}.lock"
# After the lock, which changes less often.
COPY pyproject.toml README.md LICENSE ./
COPY pipeline pipeline
RUN /opt/gristmill/bin/python -m pip install --quiet --no-deps --no-build-isolation . && \
    /opt/gristmill/bin/gristmill engines

FROM ${BASE}
LABEL org.opencontainers.image.title="gristmill" \
      org.opencontainers.image.licenses="Apache-2.0"
USER root
COPY --from=build /opt/gristmill /opt/gristmill
RUN mkdir /models /scratch && chown 1000:100 /models /scratch
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
