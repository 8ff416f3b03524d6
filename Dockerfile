# The command `deniable` with everything but Spark. Build it from the repository: docker build -t deniable .
# Use it on the files of a folder: docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" deniable plan people.csv ...
FROM python:3.12-slim
WORKDIR /opt/deniable
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt '.[collect,files,learn,report]'
RUN useradd --create-home --uid 10001 owner
USER owner
WORKDIR /work
ENTRYPOINT ["deniable"]
CMD ["--help"]
