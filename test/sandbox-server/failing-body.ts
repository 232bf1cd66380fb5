/** Creates a body that errors after these bytes. */
export function failingBody(bytes: string): ReadableStream {
  let pulls = 0;
  return new ReadableStream({
    pull(controller) {
      if (pulls++ === 0) controller.enqueue(new TextEncoder().encode(bytes));
      else controller.error(new TypeError('broken'));
    },
  });
}
