export default {
  'the page of the API shows the document, and makes calls': async (come) => {
    const v = await come();
    await v.page.goto(`${v.url}/docs#/System/get-version`);
    await v.button('Try it out').click();
    const called = v.page.waitForResponse(`${v.url}/api/v1/version`);
    await v.button('Execute').click();
    if (!(await called).ok()) throw new Error('the call is refused');
    await v.page.getByText('build_number').first().waitFor();
  },
};
