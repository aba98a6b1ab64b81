import { spawnSync } from 'node:child_process';

/** True where taskset is installed; Node has no call for pinning. */
export function canPin(): boolean {
  return (
    process.platform === 'linux' && spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0
  );
}

/** Command that starts a process on these processors. */
export function launcherOf(cpus: string | null): string[] {
  return cpus === null ? [] : ['taskset', '-c', cpus];
}

/**
 * Moves all threads of this process to these processors. Returns a function that moves them back; null where it failed.
 */
export function pinThisProcess(cpus: string): (() => void) | null {
  const before = spawnSync('taskset', ['-c', '-p', String(process.pid)], { encoding: 'utf8' });
  const list = /list: (\S+)/.exec(before.stdout ?? '')?.[1];
  const set = (to: string) =>
    spawnSync('taskset', ['-a', '-c', '-p', to, String(process.pid)], { stdio: 'ignore' }).status === 0;
  if (list === undefined || !set(cpus)) return null;
  return () => void set(list);
}
