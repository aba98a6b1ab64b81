import { spawn } from 'node:child_process';

export interface Step {
  /** Name of the step in errors: 'npm install'. */
  name: string;
  command: string;
  arguments: string[];
  directory: string;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
  /** Advice to give if the step fails with words that match. */
  advice: readonly (readonly [pattern: RegExp, advice: string])[];
  /** The error that its failure is. */
  failure: (message: string) => Error;
}

/**
 * Runs a program to its end and returns its standard output. A signal ends it and all processes that it started.
 * @throws its failure with the most telling line of its output.
 */
export async function runStep(step: Step): Promise<string> {
  const child = spawn(step.command, step.arguments, {
    cwd: step.directory,
    env: step.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a process group of its own, so that compilers end with it
  });
  const end = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      child.kill('SIGKILL');
    }
  };
  step.signal?.addEventListener('abort', end);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const status = await new Promise<number | string | null>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  step.signal?.removeEventListener('abort', end);
  step.signal?.throwIfAborted();
  if (status !== 0) throw step.failure(problemOf(step, status, `${stderr}\n${stdout}`));
  return stdout;
}

function problemOf({ name, advice }: Step, status: number | string | null, output: string): string {
  const lines = output.split('\n').filter((line) => /error|ERR!|not found|No such file/i.test(line));
  const said =
    lines.find((line) => /not found|could not|ENOTFOUND|No such file|error:/i.test(line)) ?? lines[0];
  const reason =
    said?.replace(/^(npm|gyp|node-pre-gyp) (error|ERR!)\s*(stack\s*)?/i, '').trim() ??
    `it ended with ${status}`;
  const help = advice.find(([pattern]) => pattern.test(`${output}\n${status}`))?.[1];
  return `${name} failed: ${reason.slice(0, 300)}${help === undefined ? '.' : `; ${help}.`}`;
}

/** Options of Node.js for a child of this process: its own, but for those of a debugger, which has one port. */
export function childOptions(): string[] {
  return process.execArgv.filter((argument) => !/^--(inspect|debug|watch)/.test(argument));
}
