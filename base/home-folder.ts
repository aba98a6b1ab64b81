import { homedir } from 'node:os';

/** Home of users that have none, by Debian's convention: nobody can make this folder. */
export const NO_HOME = '/nonexistent';

/**
 * The user's home folder. A container may run as a number that is no user, without HOME: Node.js throws there, though
 * nothing may ever be read or written below this folder.
 */
export function homeFolder(find: () => string = homedir): string {
  try {
    return find();
  } catch {
    return NO_HOME;
  }
}
