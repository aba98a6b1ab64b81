import type protobuf from 'protobufjs';
import { enumProblem } from './read-fields.js';

/**
 * What the library says of a text that it does not take, as the end of an error: `:3: unknown field 'nme'.` The line comes first, where it is
 * known.
 */
export function pbtxtProblem(text: string, message: string, type: protobuf.Type): string {
  const [, rest, line] = /^\.?(.*?)(?: \(line (\d+)\))?$/s.exec(message)!;
  if (line !== undefined) return `:${line}: ${rest}.`;
  const withoutComments = text.replace(/#[^\n]*/g, '');
  return wrongEnum(withoutComments, rest!, type) ?? `: ${rest}.`;
}

/** The library says of a wrong name of an enum neither where it is nor what it is. */
function wrongEnum(text: string, message: string, type: protobuf.Type): string | null {
  if (message === 'integer value expected') return quotedType(text);
  const [, owner, name] = /^([\w.]+)\.(\w+): enum value expected$/.exec(message) ?? [];
  if (owner === undefined || name === undefined) return null;
  const { resolvedType } = type.root.lookupType(owner).fields[name]!.resolve();
  if (resolvedType === null || !('values' in resolvedType)) return null;
  for (const found of text.matchAll(new RegExp(`\\b${name}\\s*:\\s*([A-Za-z_]\\w*)`, 'g'))) {
    const value = found[1]!;
    if (Object.hasOwn(resolvedType.values, value)) continue;
    return `:${lineAt(text, found.index)}: ${name} ${enumProblem(resolvedType, value)}.`;
  }
  return null;
}

function quotedType(text: string): string | null {
  const found = /\bdata_type\s*:\s*(["'])(\w*)\1/.exec(text);
  if (found === null) return null;
  return `:${lineAt(text, found.index)}: data_type is a text in quotes; ${found[2]} without them is expected.`;
}

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length;
