import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readDocument, repository } from '../../../support/documents.js';

/** What every client is asked to do: a section of its page each. */
export const CASES = {
  chat: 'Chat',
  stream: 'Stream',
  call: 'Call a function',
  structured: 'Structured output',
  error: 'Errors',
  cancel: 'Cancel',
} as const;
export type Case = keyof typeof CASES;

/** A way in which programs on a page connect to the server. */
export interface Connection {
  language: 'python' | 'js';
  /** Counts those of its language from 1. */
  number: number;
  program: string;
}

/** A page of docs/clients whose programs the tests run. */
export interface ClientPage {
  /** Name of its file without `.md`. */
  name: string;
  connections: Connection[];
  /** Packages by their installers, without versions and extras. */
  packages: { pip: string[]; npm: string[] };
  /** The program of a section, after the connection. null: the section has none in this language. */
  program(connection: Connection, heading: string): string | null;
}

const FOLDER = 'docs/clients';
/** Pages without programs of a language that is tested here. */
const WITHOUT_PROGRAMS = new Set(['README', 'codex', 'claude-code', 'cline']);

function sectionsOf(path: string): Map<string, string> {
  const [, ...parts] = readDocument(path).split(/^## (.+)$/m);
  return new Map(parts.flatMap((part, at) => (at % 2 === 0 ? [[part.trim(), parts[at + 1]!] as const] : [])));
}

const blocksOf = (section: string, language: string): string[] =>
  Array.from(
    section.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')),
    (found) => found[1]!,
  );

function readPage(name: string): ClientPage {
  const sections = sectionsOf(`${FOLDER}/${name}.md`);
  const [commands] = blocksOf(sections.get('Install') ?? '', 'sh');
  if (commands === undefined) throw new Error(`${name}.md does not say how the client is installed.`);
  const installed = (command: string) =>
    commands
      .split('\n')
      .filter((line) => line.startsWith(`${command} install `))
      .flatMap((line) =>
        line
          .slice(command.length + 9)
          .replaceAll(/"|\[[\w,]+\]/g, '')
          .split(' '),
      );
  const connections = (['python', 'js'] as const).flatMap((language) =>
    blocksOf(sections.get('Connect') ?? '', language).map((program, at) => ({
      language,
      number: at + 1,
      program,
    })),
  );
  if (connections.length === 0) throw new Error(`${name}.md does not say how the client connects.`);
  return {
    name,
    connections,
    packages: { pip: installed('pip'), npm: installed('npm') },
    program: ({ language, program }, heading) => {
      const blocks = blocksOf(sections.get(heading) ?? '', language);
      return blocks.length === 0 ? null : `${program}\n${blocks.join('\n')}`;
    },
  };
}

export const clientPages = (): ClientPage[] =>
  readdirSync(join(repository, FOLDER))
    .map((file) => file.replace(/\.md$/, ''))
    .filter((name) => !WITHOUT_PROGRAMS.has(name))
    .map(readPage);
