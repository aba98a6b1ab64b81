import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll } from 'vitest';
import { cleanEnvironment, type Ended } from './skein-process.js';

type Outcome = Omit<Ended, 'signal'>;

interface WarmOptions {
  environment?: Record<string, string>;
  input?: string;
  columns?: number;
}

/**
 * Returns a function that runs the compiled command line to its end as `runCli` does, in one process for all runs of a file, one after
 * the other. It is for what a command says and how it ends: not for signals, or commands that run side by side. `input` is the text of
 * stdin, and `columns` makes stdout a terminal of that width. It registers a hook: call it at the top of a file.
 */
export function warmCli() {
  let child: ChildProcess | null = null;
  let last: Promise<unknown> = Promise.resolve();
  let settle: { resolve: (outcome: Outcome) => void; reject: (error: Error) => void } | null = null;
  afterAll(async () => {
    if (child === null) return;
    settle = null;
    child.disconnect();
    await once(child, 'exit');
  });

  function start(): ChildProcess {
    const started = fork(new URL('./warm-cli.mjs', import.meta.url), { execArgv: [] });
    started.on('message', (outcome) => settle?.resolve(outcome as Outcome));
    started.on('exit', (code, signal) =>
      settle?.reject(new Error(`A run ended the process of all runs: ${code ?? signal}`)),
    );
    return started;
  }

  return (
    args: readonly string[],
    { environment = {}, input = '', columns }: WarmOptions = {},
  ): Promise<Outcome> => {
    const run = last.then(() => {
      child ??= start();
      child.send({ args, environment: cleanEnvironment(environment), input, columns });
      return new Promise<Outcome>((resolve, reject) => {
        settle = { resolve, reject };
      });
    });
    last = run.catch(() => {});
    return run;
  };
}
