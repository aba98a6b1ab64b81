import { readDocument } from '../../../support/documents.js';

/** Exact versions of the packages in a file of requirements, by their names without extras. */
function requirementsOf(path: string): Map<string, string> {
  const lines = readDocument(path).split('\n');
  const pins = lines.flatMap((line) => {
    const [, name, version] = /^([\w.-]+)(?:\[[\w,]+\])?==(\S+)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, version!] as const];
  });
  return new Map(pins);
}

/** Packages of pip that CI installs, by the environment that has them: clients of OpenAI's package 3, and of its package 2. */
export const pinnedPip = {
  newer: requirementsOf('test/requirements.txt'),
  older: requirementsOf('test/requirements-openai-2.txt'),
};

export const pinnedNpm = new Map(
  Object.entries(
    (JSON.parse(readDocument('package.json')) as { devDependencies: Record<string, string> }).devDependencies,
  ),
);
