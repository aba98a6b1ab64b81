import { SkeinError } from '../../base/skein-error.js';

/** Names of the exceptions that Jinja2 and Python raise for the same fault. */
export type FaultKind =
  | 'AttributeError'
  | 'FilterArgumentError'
  | 'IndexError'
  | 'KeyError'
  | 'OverflowError'
  | 'RecursionError'
  | 'RuntimeError'
  | 'SecurityError'
  | 'TemplateAssertionError'
  | 'TemplateError'
  | 'TemplateRuntimeError'
  | 'TemplateSyntaxError'
  | 'TypeError'
  | 'UndefinedError'
  | 'ValueError'
  | 'ZeroDivisionError';

/** An error of a template, or in its rendering. The message is the reason alone: the caller names the template. */
export class JinjaError extends SkeinError {
  override name = 'JinjaError';
  override readonly code = 'SKEIN_JINJA';
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** An error for what Jinja2 has and this interpreter does not. */
export class NotAvailableError extends SkeinError {
  override name = 'NotAvailableError';
  override readonly code = 'SKEIN_JINJA_NOT_AVAILABLE';
}

export const typeError = (message: string) => new JinjaError('TypeError', message);
export const valueError = (message: string) => new JinjaError('ValueError', message);
