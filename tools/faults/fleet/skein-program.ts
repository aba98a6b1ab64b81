import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));

/** Options of every engine: the bits of an answer depend on them, so workers and the single server have the same. */
export interface EngineOptions {
  /** Arguments that name the model; none: the demo model. */
  modelArguments: readonly string[];
  cacheDir: string;
  environment: NodeJS.ProcessEnv;
}

/** A command of Skein as a process of its own. */
export const skein = (
  command: 'serve' | 'work' | 'gateway',
  { cacheDir, environment }: EngineOptions,
  args: readonly string[],
) => ({
  command: process.execPath,
  args: [cli, command, '--cache-dir', cacheDir, '--log-level', 'warn', ...args],
  environment,
});

/** Arguments of every program that has an engine. */
export const engineArguments = ({ modelArguments }: EngineOptions): string[] => [
  ...modelArguments,
  ...['--threads', '1', '--max-active-requests', '16', '--max-beam-width', '2', '--kv-cache-tokens', '16384'],
];

/** A server that is asked alone: its answers are those that all others must have. */
export const singleServer = (port: number, engine: EngineOptions) => ({
  ...skein('serve', engine, ['--port', String(port), ...engineArguments(engine)]),
  ready: `http://127.0.0.1:${port}/health`,
});
