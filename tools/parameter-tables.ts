import { MAX_INT32 } from '../base/int32.js';
import { inShownOrder, type Parameter, shownBounds, TENSOR_TYPES } from '../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';
import { code, markdownTable } from './option-documents.js';

/** Values of a parameter, in words. */
function valuesText(bounds: readonly [number, number] | undefined, { kind }: Parameter): string {
  if (bounds === undefined) return kind === 'flag' ? 'true, false' : 'of 64 bits';
  const [least, most] = bounds;
  const limits = most === MAX_INT32 ? `from ${least}` : `${least} to ${most}`;
  return kind === 'integer' ? `whole, ${limits}` : limits;
}

const defaultText = ({ default: preset }: Parameter) => (preset === null ? 'drawn' : String(preset));

/** A Markdown table of the parameters by their HTTP fields, with their meaning. */
export function parameterFieldsTable(): string {
  const rows = inShownOrder(NAMED_PARAMETERS).map(({ field, parameter }) => {
    const { alias, help } = parameter;
    return [
      [field, ...(alias === undefined ? [] : [alias.field])].map(code).join(', '),
      valuesText(shownBounds(parameter), parameter),
      defaultText(parameter),
      alias === undefined ? help : `${help} ${alias.help}`,
    ];
  });
  return markdownTable(['field', 'values', 'default', 'meaning'], rows);
}

/** A Markdown table of the parameters by their tensors, with the names that they have elsewhere. */
export function parameterTensorsTable(): string {
  const rows = NAMED_PARAMETERS.map(({ name, field, tensor, parameter }) => [
    code(tensor),
    TENSOR_TYPES[parameter.kind],
    valuesText('range' in parameter ? parameter.range : undefined, parameter),
    defaultText(parameter),
    code(name),
    code(field),
  ]);
  return markdownTable(['input', 'type', 'values', 'default', '`TokenRequest`', 'HTTP'], rows);
}
