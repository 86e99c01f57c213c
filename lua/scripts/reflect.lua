function ReflectStatus(observedObj)
  return reflect(observedObj)
end
