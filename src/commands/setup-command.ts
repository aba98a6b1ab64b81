import { Command } from 'commander';
import { helpBehind } from '../terminal/help.js';
import type { SetupFlags } from './setup.js';

const SETUP_HELP = `
What there is:
  tensorflow   TensorFlow, for --executor tensorflow: without --from that of the active venv, or of the python in the
               PATH, is linked (pip install tensorflow-cpu, or tensorflow[and-cuda] for a GPU); the binding is compiled,
               for which g++, make and python3 are needed
  onnx         onnxruntime-node, for the ONNX models of a --model-repository
  nats         @nats-io/transport-node, jetstream and kv, for gateways and their workers
  tracing      the packages of OpenTelemetry, for --trace-endpoint and --tracing
  zeromq       zeromq, for --kv-events-endpoint

All are put into the cache of skein (SKEIN_CACHE_DIR); a project's own package goes before it.
`;

export function setupCommand(): Command {
  const command = new Command('setup')
    .description('install what an executor, a backend or tracing needs besides this package')
    .argument('<WHAT>', 'tensorflow, onnx, nats, tracing or zeromq')
    .option(
      '--from <PATH>',
      'tensorflow: the libtensorflow to link: a site-packages folder, a venv, a python',
    )
    .option('--download', "tensorflow: take the package's own download of libtensorflow instead")
    .option(
      '--package <NAME>',
      'tensorflow: tfjs-node-gpu, or tfjs-node in its place (default: tfjs-node-gpu)',
    )
    .option('--force', 'make it again where it is there')
    .option('--quiet', 'say nothing but where it lies')
    .option('--json', 'print folder and versions as JSON');
  return helpBehind(command, SETUP_HELP).action(async (what: string, flags: SetupFlags) => {
    const { setup } = await import('./setup.js');
    await setup(what, flags);
  });
}
