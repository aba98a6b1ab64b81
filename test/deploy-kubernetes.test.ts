import { readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { QueueNames, SHARED_BUCKETS } from '../cluster/nats/names.js';
import { defaultText, optionOf, variableName } from '../src/options/table.js';
import { WORKER_PATHS } from '../src/queue/health-port.js';
import { NATS_PACKAGES } from '../src/queue/nats-packages.js';
import { ROUTES } from '../src/server/app/routes/index.js';
import { modelFamilies } from '../src/server/metrics/families/families.js';
import { scalingFamilies } from '../src/server/metrics/families/worker-metrics.js';
import { TargetWatch } from '../src/server/metrics/scaling/target-watch.js';
import { LiveModels } from '../src/serving/model-directory.js';
import { loadConfig } from '../src/settings/config.js';
import { gatewayOptions, workOptions } from '../src/settings/queue-commands.js';
import { readDocument, repository } from './support/documents.js';
import { built, kubectl, type Manifest, manifestsOf, schemaProblems } from './support/kubernetes.js';

// What deploy/kubernetes says of gateways and workers must be true of them; test/src/queue/rolling-update.test.ts runs it.

const ROOT = 'deploy/kubernetes/queue';
const OVERLAYS = readdirSync(join(repository, ROOT, 'overlays')).map((name) => `${ROOT}/overlays/${name}`);
/** Every file of manifests, those of the single server too. */
const files = (readdirSync(join(repository, 'deploy/kubernetes'), { recursive: true }) as string[])
  .map((name) => `deploy/kubernetes/${name.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.yaml') && statSync(join(repository, path)).isFile());
/** Files with patches: parts of documents. */
const isPatch = (path: string) => path.includes('/replicated-nats/');

const base = ['nats', 'gateway', 'workers', 'network-policies'].flatMap((name) =>
  manifestsOf(`${ROOT}/base/${name}.yaml`),
);
const find = (kind: string, name: string): Manifest => {
  const found = base.find((one) => one.kind === kind && one.metadata.name === name);
  expect(found, `${kind} ${name}`).toBeDefined();
  return found;
};
const workloads = [
  find('Deployment', 'skein-gateway'),
  find('StatefulSet', 'skein-worker'),
  find('StatefulSet', 'skein-nats'),
];
const podOf = ({ spec }: Manifest) => spec.template.spec;
const containerOf = (workload: Manifest) => podOf(workload).containers[0];
const [gateway, worker] = workloads.map(containerOf);
const variablesOf = ({ env }: Manifest): Record<string, string> =>
  Object.fromEntries(env.map(({ name, value }: Manifest) => [name, value]));
const probesOf = ({ startupProbe, readinessProbe, livenessProbe }: Manifest): Manifest[] => [
  startupProbe,
  readinessProbe,
  livenessProbe,
];
/** Reads a constant of a source file, in milliseconds. */
const msOf = (path: string, name: string) =>
  Number(new RegExp(`^const ${name} = ([\\d_]+);`, 'm').exec(readDocument(path))![1]!.replaceAll('_', ''));

/** Why a command would not take the variables of a container; empty: it does. */
function refusals(command: string, variables: Record<string, string>): string[] {
  const options = command === 'gateway' ? gatewayOptions() : workOptions();
  const known = new Set(['SKEIN_ISA', ...options.map(({ name }) => variableName(name))]);
  const unknown = Object.keys(variables).filter((name) => !known.has(name));
  try {
    loadConfig({ environment: variables });
    return unknown;
  } catch (error) {
    return [...unknown, (error as Error).message];
  }
}

describe('the manifests of gateways and workers', () => {
  it('are what the schemas of Kubernetes and KEDA allow, without a field that they do not have', () => {
    const documents = files
      .filter((path) => !isPatch(path) && !path.endsWith('kustomization.yaml'))
      .flatMap(manifestsOf);
    expect(documents.length).toBeGreaterThan(15);
    for (const one of documents) expect(schemaProblems(one), `${one.kind} ${one.metadata.name}`).toEqual([]);
    const [spoilt] = manifestsOf('deploy/kubernetes/deployment.yaml');
    spoilt.spec.template.spec.containers[0].imge = 'skein';
    expect(schemaProblems(spoilt)).toEqual(['/spec/template/spec/containers/0/imge is no field']);
    spoilt.spec.replicas = '3';
    expect(schemaProblems(spoilt)[0]).toContain('spec/replicas must be integer');
  });

  it.skipIf(kubectl === null)(
    'are built by the kustomize of kubectl 1.21 or newer, each overlay as it says',
    () => {
      for (const folder of ['deploy/kubernetes', `${ROOT}/base`, ...OVERLAYS]) {
        const documents = built(folder);
        for (const one of documents) expect(schemaProblems(one), `${folder}: ${one.kind}`).toEqual([]);
        const images = documents
          .flatMap(({ spec }) => spec?.template?.spec.containers ?? [])
          .map(({ image }: Manifest) => image);
        expect(images).toContain('registry.example.com/skein:0.1.0');
        // All that is mounted is there, under the name that kustomize gave it.
        const configs = documents.filter(({ kind }) => kind === 'ConfigMap').map((one) => one.metadata.name);
        const mounted = JSON.stringify(documents).matchAll(/"configMap":\{"name":"([^"]+)"/g);
        for (const [, name] of mounted) expect(configs).toContain(name);
      }
      const of = (overlay: string, kind: string, name: string) =>
        built(`${ROOT}/overlays/${overlay}`).find((one) => one.kind === kind && one.metadata.name === name);
      const servers = of('replicated-nats', 'StatefulSet', 'skein-nats');
      expect(servers.spec.replicas).toBe(3);
      expect(containerOf(servers).args).toContain('/etc/nats/cluster.conf');
      for (const [kind, name] of [
        ['Deployment', 'skein-gateway'],
        ['StatefulSet', 'skein-worker'],
      ] as const) {
        const variables = variablesOf(containerOf(of('replicated-nats', kind, name)));
        expect(variables.SKEIN_NATS_REPLICAS).toBe(String(servers.spec.replicas));
        expect(refusals(name === 'skein-worker' ? 'work' : 'gateway', variables)).toEqual([]);
      }
      expect(of('autoscaling', 'StatefulSet', 'skein-worker').spec.replicas).toBeUndefined();
      expect(of('autoscaling', 'Deployment', 'skein-gateway').spec.replicas).toBeUndefined();
      const numbers = ['autoscaling', 'scale-to-zero'].map((overlay) => {
        const { minReplicaCount, triggers } = of(overlay, 'ScaledObject', 'skein-worker').spec;
        return [minReplicaCount, triggers.length];
      });
      expect(numbers).toEqual([
        [1, 2],
        [0, 2],
      ]);
      const held = containerOf(of('autoscaling-by-targets', 'Deployment', 'skein-gateway'));
      expect(variablesOf(held)).toMatchObject({ SKEIN_TARGET_FIRST_TOKEN_MS: '2000' });
      expect(refusals('gateway', variablesOf(held))).toEqual([]);
    },
  );

  it('name files that there are', () => {
    for (const folder of [`${ROOT}/base`, ...OVERLAYS]) {
      const {
        resources = [],
        patches = [],
        configMapGenerator = [],
      } = parse(readDocument(`${folder}/kustomization.yaml`));
      const named = [
        ...resources,
        ...patches.flatMap(({ path }: Manifest) => path ?? []),
        ...configMapGenerator.flatMap((one: Manifest) => one.files),
      ];
      const there = new Set(readdirSync(join(repository, folder)));
      for (const name of named) {
        expect(statSync(join(repository, posix.join(folder, name))), `${folder}/${name}`).toBeTruthy();
        there.delete(name);
      }
      expect([...there]).toEqual(['kustomization.yaml']);
    }
  });

  it('set options that the commands have, to values that they take', () => {
    expect(gateway.args).toEqual(['gateway']);
    expect(worker.args).toEqual(['work']);
    for (const { command, args, env } of [gateway, worker]) {
      expect(command).toEqual(['tini', '--', 'skein']);
      const variables = variablesOf({ env });
      expect(Object.keys(variables).length).toBeGreaterThan(6);
      expect(refusals(args[0], variables)).toEqual([]);
    }
    // What the image sets is taken too.
    const image = Object.fromEntries(
      Array.from(readDocument('deploy/Dockerfile').matchAll(/(SKEIN_\w+)=(\S+)/g), ([, name, value]) => [
        name!,
        value!,
      ]),
    );
    expect(refusals('gateway', image)).toEqual([]);
    expect(refusals('gateway', { SKEIN_HEALTH_PORT: '9000' })).toEqual(['SKEIN_HEALTH_PORT']);
    expect(refusals('work', { SKEIN_WORKER_WAIT_SECONDS: '3' })).toEqual(['SKEIN_WORKER_WAIT_SECONDS']);
    expect(refusals('work', { SKEIN_HEALTH_PORT: '90000' })[0]).toMatch(/^SKEIN_HEALTH_PORT is/);
  });

  it('have the ports of the programs, everywhere', () => {
    const { SKEIN_HEALTH_PORT, SKEIN_NATS } = variablesOf(worker);
    const portOf = ({ ports }: Manifest, name: string) =>
      ports.find((one: Manifest) => one.name === name).containerPort;
    expect(portOf(gateway, 'http')).toBe(Number(defaultText(optionOf('port'))));
    expect(portOf(worker, 'health')).toBe(Number(SKEIN_HEALTH_PORT));
    const nats = find('Service', 'skein-nats');
    expect(SKEIN_NATS).toBe(`nats://${nats.metadata.name}:${nats.spec.ports[0].port}`);
    expect(variablesOf(gateway).SKEIN_NATS).toBe(SKEIN_NATS);
    for (const service of base.filter(({ kind }) => kind === 'Service')) {
      const workload = workloads.find((one) => one.metadata.name === service.metadata.name);
      expect(service.spec.selector).toEqual(workload.spec.selector.matchLabels);
      for (const { port, targetPort, name } of service.spec.ports) {
        expect(targetPort).toBe(name);
        expect([portOf(containerOf(workload), name), 80]).toContain(port);
      }
    }
    const conf = readDocument(`${ROOT}/base/nats.conf`);
    expect(portOf(containerOf(workloads[2]), 'monitor')).toBe(Number(/^http_port: (\d+)$/m.exec(conf)![1]));
    for (const { spec } of base.filter(({ kind }) => kind === 'NetworkPolicy')) {
      const of = workloads.find(
        (one) =>
          JSON.stringify(one.spec.selector.matchLabels) === JSON.stringify(spec.podSelector.matchLabels),
      );
      const names = containerOf(of).ports.map(({ name }: Manifest) => name);
      for (const { port } of spec.ingress.flatMap(({ ports }: Manifest) => ports)) {
        if (typeof port === 'string') expect(names).toContain(port);
      }
    }
  });

  it('ask paths that there are and that need no key, each for what it tells', () => {
    const isOpen = (path: string) =>
      ROUTES.some((one) => one.path === path && one.method === 'get' && one.open);
    const paths = (container: Manifest) => probesOf(container).map(({ httpGet }) => httpGet.path);
    expect(paths(gateway)).toEqual(['/health', '/live', '/live']);
    expect(paths(worker)).toEqual(['/health', '/health', '/live']);
    for (const path of paths(gateway)) expect(isOpen(path), path).toBe(true);
    for (const path of paths(worker)) expect(WORKER_PATHS).toContain(path);
    for (const workload of workloads) {
      const container = containerOf(workload);
      for (const { httpGet } of probesOf(container)) {
        expect(container.ports.map(({ name }: Manifest) => name)).toContain(httpGet.port);
      }
    }
  });

  it('give each of them the time that it takes to end', () => {
    const life = 'src/commands/server-life.ts';
    const words = ['LAST_WORDS_MS', 'FLUSH_MS', 'ENGINE_END_MS'].map((name) => msOf(life, name));
    const lastWords = {
      gateway: words.reduce((sum, one) => sum + one),
      work: 2 * msOf('src/commands/work.ts', 'FLUSH_MS'),
    };
    for (const workload of workloads.slice(0, 2)) {
      const { args, lifecycle } = containerOf(workload);
      const drain = Number(variablesOf(containerOf(workload)).SKEIN_DRAIN_TIMEOUT_SECONDS);
      const [command, wait] = lifecycle?.preStop.exec.command ?? ['sleep', '0'];
      expect(command).toBe('sleep');
      const needed = drain + Number(wait) + lastWords[args[0] as 'gateway' | 'work'] / 1000;
      expect(podOf(workload).terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    }
    // A request waits as long as a worker may take to come, once its image and its engine are there.
    expect(Number(variablesOf(gateway).SKEIN_WORKER_WAIT_SECONDS)).toBeGreaterThan(60);
  });

  it('run all of them without rights, on a file system that is read only', () => {
    const user = Number(/^USER (\d+):\1$/m.exec(readDocument('deploy/Dockerfile'))![1]);
    for (const workload of workloads) {
      const { securityContext, automountServiceAccountToken, volumes } = podOf(workload);
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: user, fsGroup: user });
      expect(automountServiceAccountToken).toBe(false);
      const container = containerOf(workload);
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.resources.requests).toMatchObject({
        cpu: expect.any(String),
        memory: expect.any(String),
      });
      const claims = (workload.spec.volumeClaimTemplates ?? []).map(
        ({ metadata }: Manifest) => metadata.name,
      );
      expect(container.volumeMounts.map(({ name }: Manifest) => name).sort()).toEqual(
        [...volumes.map(({ name }: Manifest) => name), ...claims].sort(),
      );
      const secrets = Object.entries(container.image === 'skein' ? variablesOf(container) : {})
        .filter(([name]) => name.endsWith('_FILE'))
        .map(([, path]) => path);
      for (const path of [
        ...secrets,
        ...(container.image === 'skein' ? ['/cache/skein', '/tmp/x'] : ['/data/x']),
      ]) {
        const isMounted = container.volumeMounts.some((one: Manifest) =>
          path.startsWith(`${one.mountPath}/`),
        );
        expect(isMounted, path).toBe(true);
      }
    }
  });

  it('keep all but one of each while nodes are drained', () => {
    for (const workload of workloads) {
      const { spec } = find('PodDisruptionBudget', workload.metadata.name);
      expect(spec).toEqual({ maxUnavailable: 1, selector: workload.spec.selector });
      expect(workload.spec.template.metadata.labels).toEqual(workload.spec.selector.matchLabels);
    }
  });

  it('scale by metrics that a gateway has, and by the stream that it makes', () => {
    const scaled = OVERLAYS.flatMap((folder) =>
      readdirSync(join(repository, folder)).map((one) => `${folder}/${one}`),
    )
      .filter((path) => path.includes('autoscaling') && !path.endsWith('kustomization.yaml'))
      .flatMap(manifestsOf);
    expect(scaled.map(({ kind }) => kind).sort()).toEqual([
      'HorizontalPodAutoscaler',
      'ScaledObject',
      'ScaledObject',
      'ScaledObject',
    ]);
    const registry = new Registry();
    modelFamilies(registry, 1);
    scalingFamilies(registry, new TargetWatch(new LiveModels(), {}));
    let queries = 0;
    for (const { spec } of scaled) {
      expect(workloads.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toContain(
        `${spec.scaleTargetRef.kind} ${spec.scaleTargetRef.name}`,
      );
      for (const { type, metadata } of spec.triggers ?? []) {
        if (type === 'nats-jetstream') {
          expect(metadata.stream).toBe(new QueueNames('skein').stream);
          const pool = { model: variablesOf(worker).SKEIN_MODEL!, fingerprint: 'POOL' };
          expect(metadata.consumer).toBe(new QueueNames('skein').consumer(pool));
          expect(metadata.natsServerMonitoringEndpoint).toBe('skein-nats.default.svc:8222');
          continue;
        }
        expect(type).toBe('prometheus');
        const [, name, of] = /^(?:sum|max)\(([a-z_:]+)\{namespace="default", pod=~"([\w-]+)-\.\*"\}\)$/.exec(
          metadata.query,
        )!;
        expect(registry.getSingleMetric(name!), name).toBeDefined();
        expect(of).toBe('skein-gateway');
        queries += 1;
      }
    }
    expect(queries).toBe(3);
  });

  it('have an image with the packages of NATS, in the versions that are tested', () => {
    const installed = /npm install --prefix \/nats --no-save --ignore-scripts ([^\\]+) \\/.exec(
      readDocument('deploy/Dockerfile'),
    )![1]!;
    expect(installed.split(' ')).toEqual(
      Object.entries(NATS_PACKAGES).map(([name, version]) => `${name}@${version}`),
    );
  });

  it('let each user of NATS do what the page of the queue says', () => {
    const conf = readDocument(`${ROOT}/base/nats.conf`);
    const page = readDocument('docs/queue.md');
    const names = new QueueNames('skein');
    /** A subject for each of the buckets, or streams, of what gateways share. */
    const expanded = (subject: string): string[] => {
      if (/\bBUCKET\b/.test(subject))
        return SHARED_BUCKETS.map((what) => subject.replace('BUCKET', names.shared(what)));
      return /\bSTATE\b/.test(subject)
        ? names.sharedStreams.map((stream) => subject.replace('STATE', stream))
        : [subject];
    };
    for (const user of ['gateway', 'worker']) {
      const row = new RegExp(`^\\| a ${user} \\| (.+) \\| (.+) \\|$`, 'm').exec(page)!;
      const subjects = (cell: string) =>
        Array.from(cell.matchAll(/`([^`]+)`/g), ([, name]) => {
          const one = name!
            .replace('PREFIX', 'skein')
            .replace(/\bSTREAM(?=$|\.>)/, new QueueNames('skein').stream);
          return expanded(one);
        })
          .flat()
          .sort();
      const block = conf.slice(conf.indexOf(`user: ${user}\n`)).split('\n    }\n')[0]!;
      const listed = (verb: string) =>
        Array.from(
          new RegExp(`${verb}: \\[([^\\]]+)\\]`).exec(block)![1]!.matchAll(/"([^"]+)"/g),
          ([, one]) => one!,
        ).sort();
      expect(listed('publish')).toEqual(subjects(row[1]!));
      expect(listed('subscribe')).toEqual(subjects(row[2]!));
    }
  });
});
