import { execFileSync } from 'node:child_process';

/** Asks sysctl for a value, as text. */
export type AskSysctl = (name: string) => string;

const askSysctl: AskSysctl = (name) =>
  execFileSync('/usr/sbin/sysctl', ['-n', name], {
    encoding: 'utf8',
    timeout: 5_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });

let known: number | null | undefined;

/** Performance cores of this machine, which Apple's system calls its level 0; null: this is no Apple silicon. Asked once. */
export function appleCores(): number | null {
  if (process.platform !== 'darwin') return null;
  known ??= performanceCores(askSysctl);
  return known;
}

/** An Intel Mac has no levels; its physical cores are counted then. null: the system does not report it. */
export function performanceCores(ask: AskSysctl): number | null {
  for (const name of ['hw.perflevel0.physicalcpu', 'hw.physicalcpu']) {
    try {
      const count = Number.parseInt(ask(name), 10);
      if (count > 0) return count;
    } catch {
      // sysctl ends with 1 where there is no such name.
    }
  }
  return null;
}
