import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { z } from 'zod';
import { TOKEN_REQUEST } from '../src/library/contracts/token-request.js';
import { ITERATION_STATS, KV_CACHE_EVENT, TOKEN_PIECE } from './output-contracts.js';

interface Contract {
  /** Path in docs/schemas. */
  file: string;
  schema: z.ZodType;
  title: string;
  description: string;
  /** Source, and interface or table, of the fields' descriptions. */
  described: readonly (readonly [source: string, name: string])[];
}

/** The contracts of InProcessHost, in JSON. */
export const CONTRACTS: readonly Contract[] = [
  {
    file: 'token-request.json',
    schema: TOKEN_REQUEST,
    title: 'TokenRequest',
    description: 'A request to InProcessHost, as JSON: tokenRequestOf(json) makes the request of it.',
    described: [
      ['callbacks/request/parameters.ts', 'PARAMETERS'],
      ['callbacks/token-request.ts', 'TokenRequest'],
    ],
  },
  {
    file: 'token-piece.json',
    schema: TOKEN_PIECE,
    title: 'TokenPiece',
    description: 'A piece of an answer, as jsonFormOf(piece) gives it.',
    described: [['callbacks/token-request.ts', 'TokenPiece']],
  },
  {
    file: 'iteration-stats.json',
    schema: ITERATION_STATS,
    title: 'IterationStats',
    description: 'Statistics of an iteration, as onIterationStats gets them.',
    described: [['callbacks/iteration-stats.ts', 'IterationStats']],
  },
  {
    file: 'kv-cache-event.json',
    schema: KV_CACHE_EVENT,
    title: 'KvCacheEvent',
    description: 'A change of the cached blocks, as jsonFormOf(event) gives it.',
    described: [['kvcache/cache-events.ts', 'KvCacheEvent']],
  },
];

/** The text of a contract's file. */
export function schemaText({ schema, title, description, described }: Contract): string {
  const { $schema, properties, ...rest } = z.toJSONSchema(schema) as Record<string, unknown>;
  const about = Object.assign({}, ...described.map(([source, name]) => commentsOf(source, name)));
  const fields = Object.entries(properties as Record<string, object>).map(([name, field]) => {
    const text = about[name];
    return [name, text === undefined ? field : { description: text, ...field }];
  });
  const whole = { $schema, title, description, ...rest, properties: Object.fromEntries(fields) };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/** The comments of the fields of an interface, or of the entries of a table. */
function commentsOf(path: string, name: string): Record<string, string> {
  const text = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const comments: Record<string, string> = {};
  for (const member of membersOf(source, name)) {
    const [comment] = ts.getJSDocCommentsAndTags(member);
    const words = comment === undefined ? undefined : ts.getTextOfJSDocComment(comment.comment);
    if (words !== undefined && member.name !== undefined) {
      comments[member.name.getText(source)] = words.replaceAll(/\s+/g, ' ');
    }
  }
  return comments;
}

function membersOf(
  source: ts.SourceFile,
  name: string,
): readonly (ts.TypeElement | ts.ObjectLiteralElementLike)[] {
  for (const one of source.statements) {
    if (ts.isInterfaceDeclaration(one) && one.name.text === name) return one.members;
    if (!ts.isVariableStatement(one)) continue;
    const table = one.declarationList.declarations.find((declared) => declared.name.getText(source) === name);
    let value = table?.initializer;
    while (value && (ts.isSatisfiesExpression(value) || ts.isAsExpression(value))) value = value.expression;
    if (value && ts.isObjectLiteralExpression(value)) return value.properties;
  }
  throw new Error(`${source.fileName} has neither an interface nor a table ${name}.`);
}
