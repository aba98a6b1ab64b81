import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Ended {
  code: number | null;
  /** Lines of stdout that are JSON: the program's events. */
  events: Record<string, unknown>[];
  /** Everything that it wrote. */
  output: string;
}

export interface Running {
  child: ChildProcess;
  ended: Promise<Ended>;
}

/**
 * A folder for a program's settings and its work, so that it finds nothing of the user who runs the tests.
 */
export class ProgramHome {
  readonly path = mkdtempSync(join(tmpdir(), 'skein-program-'));

  /** Starts a program whose home this is, with these variables and PATH alone. */
  start(program: string, args: readonly string[], env: Record<string, string> = {}): Running {
    const child = spawn(program, args, {
      cwd: this.path,
      env: { PATH: process.env.PATH, HOME: this.path, TMPDIR: this.path, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, events: eventsOf(stdout), output: stdout + stderr }));
    });
    return { child, ended };
  }

  run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    return this.start(program, args, env).ended;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function eventsOf(stdout: string): Record<string, unknown>[] {
  return stdout.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as Record<string, unknown>];
    } catch {
      return [];
    }
  });
}
