import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** A value that was said, and the type that it should have: the name of an export of a module. */
export interface Typed {
  type: string;
  value: unknown;
}

const OPTIONS: ts.CompilerOptions = {
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  types: [],
};

/** Files of the packages and of the language, which are read once for all checks. */
const read = new Map<string, ts.SourceFile | undefined>();

function hostOf(own: string): ts.CompilerHost {
  const host = ts.createCompilerHost(OPTIONS);
  const fresh = host.getSourceFile;
  host.getSourceFile = (file, ...more) => {
    if (file === own) return fresh(file, ...more);
    if (!read.has(file)) read.set(file, fresh(file, ...more));
    return read.get(file);
  };
  return host;
}

/**
 * Messages of the compiler about values written down as constants of their types; none if the values match.
 * Fields in addition to those of the type are allowed: they are what this server has besides.
 */
export function typeProblems(module: string, values: readonly Typed[]): string[] {
  const names = [...new Set(values.map(({ type }) => type))];
  const lines = [
    `import type { ${names.join(', ')} } from '${module}';`,
    // A value that is no literal any more may have further fields.
    'type Writable<T> = { -readonly [K in keyof T]: Writable<T[K]> };',
    'const writable = <const T>(value: T) => value as Writable<T>;',
    ...names.map((name) => `const as${name} = (value: ${name}) => value;`),
    ...values.map(({ type, value }) => `as${type}(writable(${JSON.stringify(value)}));`),
  ];
  // Next to the tests, so that the packages are found.
  const file = fileURLToPath(new URL(`./said-${process.pid}.ts`, import.meta.url));
  writeFileSync(file, lines.join('\n'));
  try {
    const program = ts.createProgram([file], OPTIONS, hostOf(file));
    return ts.getPreEmitDiagnostics(program).map(({ messageText, start = 0 }) => {
      const line = lines.join('\n').slice(0, start).split('\n').length - 1;
      return `${lines[line]!.slice(0, 300)}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
  } finally {
    rmSync(file);
  }
}
