import { globalsOf } from '../../../models/jinja/globals.js';
import { Rendering, type RenderingOptions } from '../../../models/jinja/rendering.js';
import { Template } from '../../../models/jinja/template.js';
import { fromJson } from '../../../models/jinja/values/from-json.js';

/** The clock of the tests, which is that of tools/reference/templates/render.py. */
export const NOW = new Date(2026, 10, 28, 12, 5, 7);

const ALLOWANCE = { steps: 500_000, unitsPerStep: Number.POSITIVE_INFINITY, units: 2 ** 20 };

/** Text of a template with variables. */
export function render(
  source: string | Template,
  variables: Record<string, unknown> = {},
  options: Partial<RenderingOptions> = {},
): string {
  const template = typeof source === 'string' ? new Template(source) : source;
  const all = new Map(globalsOf(() => NOW));
  for (const [name, value] of Object.entries(variables)) all.set(name, fromJson(value));
  return template.render(new Rendering(all, { allowance: ALLOWANCE, ...options }));
}

/** The name of Jinja2's exception, and its message, where a template fails; else its text. */
export function outcome(source: string, variables: Record<string, unknown> = {}): string {
  try {
    return render(source, variables);
  } catch (error) {
    const { kind = (error as Error).name, message } = error as Error & { kind?: string };
    return `${kind}: ${message}`;
  }
}
