import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach } from 'vitest';

/** A program that runs during a test. */
export interface Program {
  child: ChildProcess;
  /** What it has written to stdout and stderr. */
  output(): string;
}

/**
 * Returns a function that starts a program and kills it, with all that it has started, after the test. It registers a hook: call it at the
 * top of a file, or of a `describe`.
 */
export function startedPrograms(): (
  command: string,
  args: readonly string[],
  environment?: Record<string, string>,
) => Program {
  const programs: ChildProcess[] = [];
  afterEach(async () => {
    await Promise.all(programs.splice(0).map(killGroup));
  });
  return (command, args, environment = {}) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, which can be killed whole.
      detached: true,
    });
    programs.push(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    return { child, output: () => output };
  };
}

/** Kills a program and all of its group, and waits for its end. */
export async function killGroup(child: ChildProcess): Promise<void> {
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  const ended = hasEnded ? null : once(child, 'exit');
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
  await ended;
}
