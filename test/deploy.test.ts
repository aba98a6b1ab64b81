import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { QueueNames, SHARED_BUCKETS } from '../cluster/nats/names.js';
import { defaultText, flagName, OPTION_NAMES, optionOf, variableName } from '../src/options/table.js';
import { ROUTES } from '../src/server/app/routes/index.js';
import { start, startServer } from './src/support/skein-process.js';
import { certificateFixture } from './src/support/tls.js';
import { readDocument, repository } from './support/documents.js';
import { temporaryFolder } from './support/fresh-folders.js';

// The files of deploy/ must be true of the server: these tests keep them from growing stale.

// biome-ignore lint/suspicious/noExplicitAny: YAML of several formats, walked by the names that they define.
const yaml = (path: string): any => parse(readDocument(path));
const files = (readdirSync(join(repository, 'deploy'), { recursive: true }) as string[])
  .map((name) => `deploy/${name.replaceAll('\\', '/')}`)
  .filter((path) => statSync(join(repository, path)).isFile());

const dockerfile = readDocument('deploy/Dockerfile');
const unit = readDocument('deploy/systemd/skein.service');
const compose = yaml('deploy/compose/compose.yaml');
const deployment = yaml('deploy/kubernetes/deployment.yaml');
const pod = deployment.spec.template.spec;
const [container] = pod.containers;

const VARIABLES = new Set(OPTION_NAMES.map(variableName));
const FLAGS = new Set(OPTION_NAMES.map((name) => `--${flagName(name)}`));
/**
 * Variables that the compose file itself reads (a folder of the host), the worker of Dynamo (the command of Skein) and the addon; and what
 * looks like one: streams and buckets of the work queue.
 */
const NAMES = new QueueNames('skein');
const NOT_THE_SERVERS = new Set([
  'SKEIN_MODELS_DIR',
  'SKEIN_COMMAND',
  'SKEIN_ISA',
  NAMES.stream,
  NAMES.shared('CONTENTS'),
  ...SHARED_BUCKETS.map((what) => NAMES.shared(what)),
]);
/** Variables that src/hub reads. */
const HUB_VARIABLES = new Set(['HF_TOKEN', 'HF_HOME']);

const PORT = defaultText(optionOf('port'));
const DRAIN_SECONDS = Number(defaultText(optionOf('drainTimeoutSeconds')));
/** LAST_WORDS_MS and ENGINE_END_MS of src/commands/server-life.ts. */
const AFTER_DRAINING = Array.from(
  readDocument('src/commands/server-life.ts').matchAll(/^const (?:LAST_WORDS|ENGINE_END)_MS = ([\d_]+);/gm),
  (match) => Number(match[1]!.replace('_', '')) / 1000,
);
const NEEDED_TO_STOP = DRAIN_SECONDS + AFTER_DRAINING.reduce((sum, one) => sum + one, 0);

const seconds = (text: string) => Number(/^(\d+)s?$/.exec(text)![1]);
const isOpen = (path: string) =>
  ROUTES.some((route) => route.path === path && route.method === 'get' && route.open);

describe('the files of deploy/', () => {
  it('and their page name options that there are', () => {
    expect(files.length).toBeGreaterThan(10);
    expect(AFTER_DRAINING).toHaveLength(2);
    const named = new Set<string>();
    for (const path of [...files, 'docs/deploy.md', 'docs/kubernetes.md']) {
      const text = readDocument(path);
      for (const [name] of text.matchAll(/\bSKEIN_[A-Z_]*[A-Z]\b/g)) {
        named.add(name);
        if (!NOT_THE_SERVERS.has(name)) expect(VARIABLES, path).toContain(name);
      }
      for (const [name] of text.matchAll(/\bHF_[A-Z_]+\b/g)) expect(HUB_VARIABLES, path).toContain(name);
      for (const [, flags] of text.matchAll(/\bskein((?: --[\w-]+(?: [^\s-][^\s`]*)?)+)/g)) {
        for (const [flag] of flags!.matchAll(/--[\w-]+/g)) expect(FLAGS, path).toContain(flag);
      }
    }
    expect(named.size).toBeGreaterThan(7);
    for (const name of HUB_VARIABLES) expect(readDocument('src/hub/settings.ts')).toContain(name);
  });

  it('use the port that the server has', () => {
    expect(dockerfile).toMatch(new RegExp(`^EXPOSE ${PORT}$`, 'm'));
    expect(dockerfile).toContain(`SKEIN_PORT=${PORT} `);
    expect(compose.services.skein.ports).toEqual([`127.0.0.1:${PORT}:${PORT}`]);
    const [job] = yaml('deploy/compose/prometheus.yml').scrape_configs;
    expect(job.static_configs[0].targets).toEqual([`skein:${PORT}`]);
    const http = container.ports.find((port: { name: string }) => port.name === 'http');
    expect(http.containerPort).toBe(Number(PORT));
    expect(yaml('deploy/kubernetes/service.yaml').spec.ports[0].targetPort).toBe('http');
  });

  it('ask routes that need no key, each for what it tells', () => {
    const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => {
      expect(container[probe].httpGet.port).toBe('http');
      return container[probe].httpGet.path as string;
    });
    expect(paths).toEqual(['/live', '/live', '/health']);
    expect(readDocument('deploy/healthcheck.mjs')).toContain("path: '/health'");
    for (const path of [...paths, '/health']) expect(isOpen(path), path).toBe(true);
    const [job] = yaml('deploy/compose/prometheus.yml').scrape_configs;
    expect(ROUTES.map((route) => route.path)).toContain(job.metrics_path);
  });

  it('give it the time to drain that it takes', () => {
    expect(NEEDED_TO_STOP).toBeLessThanOrEqual(45);
    expect(seconds(compose.services.skein.stop_grace_period)).toBeGreaterThanOrEqual(NEEDED_TO_STOP);
    expect(compose.services.skein.environment.SKEIN_DRAIN_TIMEOUT_SECONDS).toBe(String(DRAIN_SECONDS));
    expect(seconds(/^TimeoutStopSec=(.+)$/m.exec(unit)![1]!)).toBeGreaterThanOrEqual(NEEDED_TO_STOP);
    // Which it takes as no failure, while a model loads too.
    expect(unit).toMatch(/^SuccessExitStatus=143$/m);
    const [command, wait] = container.lifecycle.preStop.exec.command;
    expect(command).toBe('sleep');
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(NEEDED_TO_STOP + Number(wait));
    const drain = container.env.find((one: { name: string }) => one.name === 'SKEIN_DRAIN_TIMEOUT_SECONDS');
    expect(drain.value).toBe(String(DRAIN_SECONDS));
    expect(dockerfile).toMatch(/^STOPSIGNAL SIGTERM$/m);
  });

  it('run it without rights', () => {
    const user = Number(/^USER (\d+):\1$/m.exec(dockerfile)![1]);
    expect(user).toBeGreaterThan(0);
    const { runAsNonRoot, runAsUser, fsGroup } = pod.securityContext;
    expect({ runAsNonRoot, runAsUser, fsGroup }).toEqual({
      runAsNonRoot: true,
      runAsUser: user,
      fsGroup: user,
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    for (const line of [
      'DynamicUser=yes',
      'ProtectSystem=strict',
      'NoNewPrivileges=yes',
      'CapabilityBoundingSet=',
    ]) {
      expect(unit.split('\n')).toContain(line);
    }
  });

  it('mount what they name, where the server looks for it', () => {
    const { volumeMounts } = container as { volumeMounts: { name: string; mountPath: string }[] };
    expect(volumeMounts.map(({ name }) => name).sort()).toEqual(
      pod.volumes.map(({ name }: { name: string }) => name).sort(),
    );
    const claim = yaml('deploy/kubernetes/persistent-volume-claim.yaml').metadata.name;
    expect(pod.volumes[0].persistentVolumeClaim.claimName).toBe(claim);
    const cache = /SKEIN_CACHE_DIR=(\S+)/.exec(dockerfile)![1]!;
    const keys = container.env.find((one: { name: string }) => one.name === 'SKEIN_API_KEY_FILE')
      .value as string;
    for (const path of [cache, keys, '/tmp/x']) {
      expect(
        volumeMounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)),
        path,
      ).toBe(true);
    }
    expect(compose.services.skein.volumes).toContain('cache:/cache');
    const { resources } = yaml('deploy/kubernetes/kustomization.yaml');
    for (const name of resources) expect(files).toContain(`deploy/kubernetes/${name}`);
    const labels = deployment.spec.selector.matchLabels;
    expect(deployment.spec.template.metadata.labels).toEqual(labels);
    expect(yaml('deploy/kubernetes/service.yaml').spec.selector).toEqual(labels);
  });

  it('name files of this repository that there are', () => {
    const mounts = Object.values(compose.services as Record<string, { volumes?: string[] }>)
      .flatMap(({ volumes = [] }) => volumes)
      .map((volume) => volume.replace(/\$\{\w+:-([^}]*)\}/, '$1').split(':')[0]!)
      .filter((path) => path.startsWith('.'));
    expect(mounts.length).toBeGreaterThan(4);
    for (const path of mounts) {
      expect(existsSync(join(repository, 'deploy/compose', path)), path).toBe(true);
    }
    const { context, dockerfile: file } = compose.services.skein.build;
    expect(posix.join('deploy/compose', context)).toBe('.');
    expect(files).toContain(file);
    const [, home] = /GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: (\S+)/.exec(
      readDocument('deploy/compose/compose.yaml'),
    )!;
    const folder = yaml('deploy/compose/grafana/dashboards.yaml').providers[0].options.path;
    expect(posix.dirname(home!)).toBe(folder);
    expect(compose.services.grafana.volumes.some((one: string) => one.includes(`:${home}:`))).toBe(true);
    const { bin } = JSON.parse(readDocument('package.json')) as { bin: { skein: string } };
    expect(unit).toContain(`/node_modules/skein/${bin.skein} serve\n`);
    expect(dockerfile).toContain(`ln -s /app/${bin.skein} /usr/local/bin/skein`);
  });
});

describe('the image', () => {
  const folder = temporaryFolder('skein-image');

  const copies = Array.from(dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm), (match) => match[1]!.split(' '));
  const fromBuild = Array.from(dockerfile.matchAll(/^COPY --from=build (.+)$/gm), (match) =>
    match[1]!.split(' '),
  );

  it('is made of files that there are and that .dockerignore lets through', () => {
    const allowed = readDocument('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => new RegExp(`^${line.slice(1).replaceAll('.', '\\.').replaceAll('*', '.*')}(/|$)`));
    const sources = copies.flatMap((words) => words.slice(0, -1)).filter((source) => source !== '.');
    expect(sources.length).toBeGreaterThan(5);
    for (const source of sources) {
      expect(existsSync(join(repository, source)), source).toBe(true);
      expect(
        allowed.some((pattern) => pattern.test(source)),
        source,
      ).toBe(true);
    }
    // The build inside the image reads the compiler's folders and the tools that bundle.
    const { include } = JSON.parse(readDocument('tsconfig.build.json')) as { include: string[] };
    for (const source of include)
      expect(
        allowed.some((pattern) => pattern.test(source)),
        source,
      ).toBe(true);
  });

  it('has what the server needs to serve the model in the box, and a health check that tells', async () => {
    for (const words of fromBuild) {
      const target = words.at(-1)!;
      for (const source of words.slice(0, -1)) {
        const path = join(repository, source.replace('/src/', ''));
        const link = join(folder, target.endsWith('/') ? join(target, posix.basename(source)) : target);
        mkdirSync(dirname(link), { recursive: true });
        symlinkSync(path, link);
      }
    }
    expect(readdirSync(folder).sort()).toEqual(
      ['LICENSE', 'binding.gyp', 'build', 'dist', 'models', 'node_modules', 'package.json'].sort(),
    );
    const preserve = ['--preserve-symlinks', '--preserve-symlinks-main'];
    const cache = join(folder, 'cache');
    const server = await start(
      [...preserve, join(folder, 'dist/bin/skein.js'), 'serve', '--port', '0', '--cache-dir', cache],
      {},
    );
    expect(server.output().stdout).toMatch(
      /serves gosling[\s\S]*native executor[\s\S]*npx skein serve --model/,
    );
    const health = await check({ SKEIN_PORT: new URL(server.url).port });
    expect(health).toEqual({ code: 0, stdout: expect.stringContaining('"status":"ready"') });
    expect((await server.stop()).code).toBe(0);
    const gone = await check({ SKEIN_PORT: new URL(server.url).port });
    expect(gone).toEqual({ code: 1, stdout: expect.stringContaining('ECONNREFUSED') });
  });

  it('has a health check that fails while the server takes no requests, and that speaks HTTPS', async () => {
    const draining = createServer((_, response) => void response.writeHead(503).end('{"status":"draining"}'));
    await new Promise<void>((resolve) => draining.listen(0, '127.0.0.1', resolve));
    const { port } = draining.address() as AddressInfo;
    expect(await check({ SKEIN_PORT: String(port) })).toEqual({ code: 1, stdout: '{"status":"draining"}' });
    draining.close();
    const { cert, key } = certificateFixture('localhost');
    const server = await startServer(['--tls-cert', cert, '--tls-key', key]);
    const environment = { SKEIN_PORT: new URL(server.url).port, SKEIN_TLS_CERT: cert };
    expect(await check(environment)).toMatchObject({ code: 0 });
    await server.stop();
  });
});

async function check(environment: Record<string, string>): Promise<{ code: number; stdout: string }> {
  const run = promisify(execFile)(process.execPath, [join(repository, 'deploy/healthcheck.mjs')], {
    env: { ...process.env, ...environment },
  });
  return run.then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout: stdout.trim() }),
  );
}
