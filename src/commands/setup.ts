import { type SetupOptions, setUpPackages } from '../../base/setup-packages.js';
import {
  TENSORFLOW_PACKAGES,
  type TensorFlowPackage,
} from '../../engine/executors/tensorflow/installation.js';
import { installTensorFlow } from '../../engine/executors/tensorflow/setup/install-tensorflow.js';
import { UsageError } from '../errors/user-errors.js';
import { listenForInterruption } from './interruption.js';

export interface SetupFlags {
  from?: string;
  download?: boolean;
  package?: string;
  force?: boolean;
  json?: boolean;
  quiet?: boolean;
}

/** skein setup tensorflow, onnx, nats, tracing or zeromq: prints the folder. @throws UsageError, TensorFlowError, BackendError. */
export async function setup(what: string, flags: SetupFlags): Promise<void> {
  if (what === 'onnx') return setupOnnx(flags);
  if (what === 'nats') return setupNats(flags);
  if (what === 'tracing') return setupTracing(flags);
  if (what === 'zeromq') return setupZeroMq(flags);
  if (what !== 'tensorflow') {
    throw new UsageError(
      `There is no setup of '${what}'; there are: tensorflow, onnx, nats, tracing, zeromq.`,
    );
  }
  return setupTensorFlow(flags);
}

async function setupOnnx(flags: SetupFlags): Promise<void> {
  const { installOnnxRuntime } = await import('../../engine/backends/onnx/install-onnx.js');
  await setupPackages(flags, installOnnxRuntime, ({ version }) => `ONNX Runtime ${version}`);
}

async function setupNats(flags: SetupFlags): Promise<void> {
  const { NATS_PACKAGES: packages, natsSetupFolder } = await import('../queue/nats-packages.js');
  const wanted = { name: 'skein-nats', packages, folder: natsSetupFolder() };
  await setupPackages(
    flags,
    (options) => installPackages(wanted, options),
    () => 'the client of NATS',
  );
}

async function setupTracing(flags: SetupFlags): Promise<void> {
  const { TRACING_PACKAGES, tracingSetupFolder } = await import('../server/tracing/telemetry/packages.js');
  const wanted = { name: 'skein-opentelemetry', packages: TRACING_PACKAGES, folder: tracingSetupFolder() };
  await setupPackages(
    flags,
    (options) => installPackages(wanted, options),
    () => 'tracing',
  );
}

async function setupZeroMq(flags: SetupFlags): Promise<void> {
  const { ZEROMQ_PACKAGE: packages, zeroMqSetupFolder } = await import(
    '../serving/kv-events/zeromq-package.js'
  );
  // Its addon comes compiled, for each system.
  const trial = "new (require('zeromq').Publisher)().close()";
  const wanted = { name: 'skein-zeromq', packages, folder: zeroMqSetupFolder(), trial };
  await setupPackages(
    flags,
    (options) => installPackages(wanted, options),
    () => 'ZeroMQ',
  );
}

/** Packages of npm alone. @param nameOf what is set up, in a sentence */
async function setupPackages<Installed extends { folder: string; isNew: boolean }>(
  { from, download, package: name, force, quiet, json }: SetupFlags,
  install: (options: SetupOptions) => Promise<Installed>,
  nameOf: (installed: Installed) => string,
): Promise<void> {
  if (from !== undefined || download || name !== undefined) {
    throw new UsageError('--from, --download and --package are options of "skein setup tensorflow".');
  }
  const interruption = listenForInterruption('interrupted; nothing was changed');
  const installed = await install({
    force,
    signal: interruption.signal,
    onStep: (text) => {
      if (!quiet) process.stderr.write(`skein: ${text}\n`);
    },
  });
  interruption.release();
  if (json) {
    process.stdout.write(`${JSON.stringify(installed)}\n`);
    return;
  }
  const state = installed.isNew ? 'is set up' : 'was set up already';
  if (!quiet) process.stderr.write(`skein: ${nameOf(installed)} ${state}\n`);
  process.stdout.write(`${installed.folder}\n`);
}

async function setupTensorFlow(flags: SetupFlags): Promise<void> {
  if (flags.download && flags.from !== undefined) {
    throw new UsageError('--from links a libtensorflow and --download fetches one; give one of them.');
  }
  const name = packageOf(flags.package ?? TENSORFLOW_PACKAGES[0]);
  const interruption = listenForInterruption('interrupted; nothing was changed');
  const installed = await installTensorFlow({
    package: name,
    from: flags.from,
    download: flags.download,
    force: flags.force,
    signal: interruption.signal,
    onStep: (text) => {
      if (!flags.quiet) process.stderr.write(`skein: ${text}\n`);
    },
  });
  interruption.release();
  if (flags.json) {
    process.stdout.write(`${JSON.stringify(installed)}\n`);
    return;
  }
  if (!flags.quiet) {
    const device = installed.gpu ? 'it sees a GPU' : 'it computes on the CPU';
    const state = installed.isNew ? 'is set up' : 'was set up already';
    process.stderr.write(`skein: TensorFlow ${installed.tensorflow} ${state}; ${device}\n`);
  }
  process.stdout.write(`${installed.folder}\n`);
}

function packageOf(name: string): TensorFlowPackage {
  const full = name.startsWith('@') ? name : `@tensorflow/${name}`;
  const found = TENSORFLOW_PACKAGES.find((one) => one === full);
  if (found !== undefined) return found;
  throw new UsageError(
    `There is no package '${name}' for this; there are: ${TENSORFLOW_PACKAGES.join(', ')}.`,
  );
}

interface OptionalPackages {
  /** Of the folder's package.json. */
  name: string;
  /** Versions by names. */
  packages: Readonly<Record<string, string>>;
  folder: string;
  /** A program that fails where they cannot be used; default: it loads them. */
  trial?: string;
}

/** Installs packages of npm that some option needs into a folder of the user's cache. @throws UsageError; the reason of `signal` */
async function installPackages(
  { name, packages, folder, trial }: OptionalPackages,
  options: SetupOptions,
): Promise<{ folder: string; isNew: boolean }> {
  const loads = Object.keys(packages).map((one) => `require('${one}')`);
  const failure = (message: string) => new UsageError(message);
  const setup = { target: folder, name, packages, trial: trial ?? loads.join(';'), failure };
  return { folder, isNew: await setUpPackages(setup, options) };
}
