window.ui = SwaggerUIBundle({
  url: document.getElementById('page').dataset.document,
  dom_id: '#page',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  showExtensions: true,
  showCommonExtensions: true,
  validatorUrl: null,
  // Calls go to where the page came from, all that its policy allows: that may be another name of the service than its public URL.
  requestInterceptor: (request) => {
    const { pathname, search } = new URL(request.url, location.href);
    return Object.assign(request, { url: location.origin + pathname + search });
  },
});
