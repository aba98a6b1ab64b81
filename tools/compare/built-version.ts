import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Commit and day of the source in `folder`, which programs were built from in `build/bin`. Programs that were carried to a machine
 * without their source have them in `build/bin/version.txt`.
 */
export function builtVersion(folder: string): string {
  const carried = join(folder, 'build', 'bin', 'version.txt');
  if (existsSync(carried)) return readFileSync(carried, 'utf8').trim();
  const args = ['-C', folder, 'log', '-1', '--abbrev=7', '--format=%h %cs'];
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}
